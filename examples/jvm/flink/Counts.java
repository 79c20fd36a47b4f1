import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.state.*;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.connector.source.util.ratelimit.RateLimiterStrategy;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.connector.datagen.source.*;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;
import org.apache.flink.util.Collector;

/**
 * Counts the numbers of a sequence by key, in Flink's EmbeddedRocksDBStateBackend. Which library is
 * behind it depends on java.library.path alone.
 *
 * <pre>
 * Counts [OPTION=VALUE...]    counts, from execution.state-recovery.path on; 1 if a count is wrong
 * </pre>
 */
public class Counts extends KeyedProcessFunction<Long, Long, Void> {
  static final long NUMBERS = 600_000;
  static final long KEYS = 20_011;
  static final int PER_SECOND = 30_000;

  /** The whole job runs in this process. */
  static final AtomicLong counted = new AtomicLong();
  static final Map<Long, Long> counts = new ConcurrentHashMap<>();

  private transient ValueState<Long> count;

  @Override
  public void open(OpenContext context) {
    count = getRuntimeContext().getState(new ValueStateDescriptor<>("count", Types.LONG));
  }

  @Override
  public void processElement(Long number, Context context, Collector<Void> out) throws Exception {
    Long before = count.value();
    count.update(before == null ? 1 : before + 1);
    counted.incrementAndGet();
    // Due when the sequence has ended.
    context.timerService().registerEventTimeTimer(Long.MAX_VALUE);
  }

  @Override
  public void onTimer(long time, OnTimerContext context, Collector<Void> out) throws Exception {
    if (counts.put(context.getCurrentKey(), count.value()) != null) {
      throw new IllegalStateException("the key " + context.getCurrentKey() + " ended twice");
    }
  }

  public static void main(String[] options) throws Exception {
    Configuration configuration = new Configuration();
    for (String option : options) {
      int at = option.indexOf('=');
      configuration.setString(option.substring(0, at), option.substring(at + 1));
    }
    StreamExecutionEnvironment flink =
        StreamExecutionEnvironment.createLocalEnvironment(2, configuration);
    DataGeneratorSource<Long> numbers = new DataGeneratorSource<>(number -> number, NUMBERS,
        RateLimiterStrategy.perSecond(PER_SECOND), Types.LONG);
    flink.fromSource(numbers, WatermarkStrategy.noWatermarks(), "numbers").uid("numbers")
        .keyBy(number -> number % KEYS, Types.LONG)
        .process(new Counts(), Types.VOID).uid("counts")
        .sinkTo(new DiscardingSink<>()).uid("nothing");
    flink.execute("counts");
    int wrong = 0;
    for (long key = 0; key < KEYS; key++) {
      long expected = NUMBERS / KEYS + (key < NUMBERS % KEYS ? 1 : 0);
      wrong += counts.getOrDefault(key, 0L) == expected ? 0 : 1;
    }
    System.out.println(NUMBERS + " numbers, " + counted + " of them in the last run, " + wrong
        + " of " + KEYS + " counts wrong");
    // The last of several runs that counts all numbers did not go on from a checkpoint.
    System.exit(wrong == 0 && counted.get() < NUMBERS ? 0 : 1);
  }
}
