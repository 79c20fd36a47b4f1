import java.io.File;
import java.util.*;
import org.apache.kafka.common.serialization.*;
import org.apache.kafka.streams.processor.api.MockProcessorContext;
import org.apache.kafka.streams.state.*;

/**
 * Times a count in the store that Kafka Streams puts on RocksDB, without a broker: each record
 * reads a count and writes it, and each 10,000 records are a commit, which flushes the store.
 * Prints
 * records a second. The arguments are an empty directory, a count of records and a count of words.
 */
public class Count {
  public static void main(String[] args) {
    int records = Integer.parseInt(args[1]);
    int words = Integer.parseInt(args[2]);
    KeyValueStore<String, Long> store = Stores
        .keyValueStoreBuilder(Stores.persistentKeyValueStore("counts"), Serdes.String(),
            Serdes.Long())
        .withCachingDisabled().withLoggingDisabled().build();
    MockProcessorContext<Void, Void> context = new MockProcessorContext<>(new Properties(),
        new org.apache.kafka.streams.processor.TaskId(0, 0), new File(args[0]));
    store.init(context.getStateStoreContext(), store);
    Random random = new Random(1);
    // The first fifth lets the JVM compile.
    long began = 0;
    for (int i = 0; i < records; i++) {
      if (i == records / 5) {
        began = System.nanoTime();
      }
      double skewed = random.nextDouble() * random.nextDouble();
      String word = "word-" + (int) (skewed * words);
      Long count = store.get(word);
      store.put(word, count == null ? 1 : count + 1);
      if (i % 10_000 == 9_999) {
        store.flush();
      }
    }
    double seconds = (System.nanoTime() - began) / 1e9;
    System.out.printf("rate %.0f%n", (records - records / 5) / seconds);
    long sum = 0;
    try (KeyValueIterator<String, Long> all = store.all()) {
      while (all.hasNext()) {
        sum += all.next().value;
      }
    }
    store.close();
    if (sum != records) {
      throw new AssertionError("counted " + sum);
    }
  }
}
