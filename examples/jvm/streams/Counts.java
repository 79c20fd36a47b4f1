import java.nio.file.*;
import java.time.Duration;
import java.util.*;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.LongAdder;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.*;
import org.apache.kafka.streams.*;
import org.apache.kafka.streams.kstream.*;
import org.apache.kafka.streams.state.Stores;

/**
 * Counts words with Kafka Streams, exactly once, in a store of RocksDB's. Which library is behind
 * the
 * store depends on java.library.path alone.
 *
 * <pre>
 * Counts topics BROKER                      makes the topics, of four partitions each
 * Counts produce BROKER FROM TO             produces updates FROM to TO, of 500 words or -Dwords=N
 * Counts count BROKER DIRECTORY             counts until it is stopped
 * Counts check BROKER UPDATES               waits for the counts of so many updates; 1 if they
 * differ
 * Counts many BROKER DIRECTORY UPDATES N    counts so many updates in N stores for each partition,
 * and ends; tells the rate
 * </pre>
 */
public class Counts {
  static final int WORDS = Integer.getInteger("words", 500);
  static final int PARTITIONS = 4;

  static Properties client(String broker) {
    Properties p = new Properties();
    p.put("bootstrap.servers", broker);
    return p;
  }

  static void topics(String broker) throws Exception {
    try (Admin admin = Admin.create(client(broker))) {
      List<NewTopic> topics = new ArrayList<>();
      for (String name : new String[] {"words", "counts"}) {
        topics.add(new NewTopic(name, PARTITIONS, (short) 1));
      }
      admin.createTopics(topics).all().get();
    }
  }

  static void produce(String broker, int from, int to) {
    Properties p = client(broker);
    p.put("acks", "all");
    p.put("linger.ms", "5");
    try (Producer<String, String> producer = new KafkaProducer<>(p, new StringSerializer(),
        new StringSerializer())) {
      for (int i = from; i < to; i++) {
        producer.send(new ProducerRecord<>("words", "word-" + i % WORDS, "update " + i));
      }
    }
  }

  static Properties application(String broker, String name, String directory) {
    Properties p = client(broker);
    p.put(StreamsConfig.APPLICATION_ID_CONFIG, name);
    p.put(StreamsConfig.STATE_DIR_CONFIG, directory);
    p.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
    p.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, 200);
    p.put("auto.offset.reset", "earliest");
    p.put("session.timeout.ms", 6000);
    p.put("heartbeat.interval.ms", 1000);
    p.put(StreamsConfig.producerPrefix("transaction.timeout.ms"), 10000);
    return p;
  }

  static void count(String broker, String directory) throws Exception {
    StreamsBuilder builder = new StreamsBuilder();
    builder.stream("words", Consumed.with(Serdes.String(), Serdes.String()))
        .groupByKey(Grouped.with(Serdes.String(), Serdes.String()))
        .count(Materialized.<String, Long>as(Stores.persistentKeyValueStore("counts"))
            .withKeySerde(Serdes.String()).withValueSerde(Serdes.Long()).withCachingDisabled())
        .toStream().to("counts", Produced.with(Serdes.String(), Serdes.Long()));
    Properties p = application(broker, "counts", directory);
    KafkaStreams streams = new KafkaStreams(builder.build(), p);
    CountDownLatch ended = new CountDownLatch(1);
    streams.setStateListener((now, before) -> System.out.println("state " + now));
    Runtime.getRuntime().addShutdownHook(new Thread(() -> {
      streams.close(Duration.ofSeconds(60));
      ended.countDown();
    }));
    streams.start();
    ended.await();
  }

  static void many(String broker, String directory, long updates, int stores) throws Exception {
    CountDownLatch ended = new CountDownLatch(1);
    LongAdder counted = new LongAdder();
    StreamsBuilder builder = new StreamsBuilder();
    KGroupedStream<String, String> words =
        builder.stream("words", Consumed.with(Serdes.String(), Serdes.String()))
            .groupByKey(Grouped.with(Serdes.String(), Serdes.String()));
    for (int i = 0; i < stores; i++) {
      words.count(Materialized.<String, Long>as(Stores.persistentKeyValueStore("counts-" + i))
          .withKeySerde(Serdes.String()).withValueSerde(Serdes.Long()).withCachingDisabled())
          .toStream().foreach((word, count) -> {
            counted.increment();
            if (counted.sum() >= updates * stores) {
              ended.countDown();
            }
          });
    }
    String name = "many-" + ProcessHandle.current().pid();
    Properties p = application(broker, name, directory + "/" + name);
    KafkaStreams streams = new KafkaStreams(builder.build(), p);
    // The rate is that of the counting, without the start.
    CountDownLatch running = new CountDownLatch(1);
    streams.setStateListener((now, before) -> {
      if (now == KafkaStreams.State.RUNNING) {
        running.countDown();
      } else if (now == KafkaStreams.State.ERROR) {
        System.exit(1);
      }
    });
    streams.start();
    running.await();
    long began = System.nanoTime();
    ended.await();
    double seconds = (System.nanoTime() - began) / 1e9;
    streams.close(Duration.ofSeconds(60));
    System.out.printf("%.0f operations a second, %d in %.1f s%n", updates * stores / seconds,
        updates * stores, seconds);
    System.exit(0);
  }

  static void check(String broker, long updates) throws Exception {
    Properties p = client(broker);
    p.put("isolation.level", "read_committed");
    p.put("auto.offset.reset", "earliest");
    Map<String, Long> counts = new HashMap<>();
    long began = System.nanoTime();
    long sum = 0;
    try (Consumer<String, Long> consumer = new KafkaConsumer<>(p, new StringDeserializer(),
        new LongDeserializer())) {
      List<TopicPartition> all = new ArrayList<>();
      for (int i = 0; i < PARTITIONS; i++) {
        all.add(new TopicPartition("counts", i));
      }
      consumer.assign(all);
      consumer.seekToBeginning(all);
      while (sum < updates && System.nanoTime() - began < 180_000_000_000L) {
        for (ConsumerRecord<String, Long> record : consumer.poll(Duration.ofMillis(200))) {
          Long before = counts.put(record.key(), record.value());
          if (record.value() != (before == null ? 0 : before) + 1) {
            throw new IllegalStateException(record.key() + " went from " + before + " to "
                + record.value());
          }
          sum++;
        }
      }
    }
    int wrong = 0;
    for (int word = 0; word < WORDS; word++) {
      long expected = updates / WORDS + (word < updates % WORDS ? 1 : 0);
      wrong += counts.getOrDefault("word-" + word, 0L) == expected ? 0 : 1;
    }
    System.out.println(sum + " of " + updates + " updates counted, " + wrong + " words of "
        + WORDS + " wrong");
    System.exit(sum == updates && wrong == 0 ? 0 : 1);
  }

  public static void main(String[] a) throws Exception {
    switch (a[0]) {
      case "topics": topics(a[1]); break;
      case "produce": produce(a[1], Integer.parseInt(a[2]), Integer.parseInt(a[3])); break;
      case "count": count(a[1], a[2]); break;
      case "many": many(a[1], a[2], Long.parseLong(a[3]), Integer.parseInt(a[4])); break;
      case "check": check(a[1], Long.parseLong(a[2])); break;
      default: throw new IllegalArgumentException(a[0]);
    }
  }
}
