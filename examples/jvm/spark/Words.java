import java.nio.file.*;
import java.nio.file.attribute.FileTime;
import java.util.*;
import org.apache.spark.api.java.function.VoidFunction2;
import org.apache.spark.sql.*;
import org.apache.spark.sql.streaming.*;

/**
 * Counts the words of the files in a directory with Spark Structured Streaming, one file a batch,
 * in Spark's state store on RocksDB. Which library is behind the store depends on
 * java.library.path alone.
 *
 * <pre>
 * Words produce DIRECTORY    makes the files
 * Words count DIRECTORY      counts, from the last checkpoint on; 1 if a count of a batch is wrong
 * </pre>
 */
public class Words {
  static final int FILES = 40;
  static final int WORDS = 10000;
  static final int PER_FILE = 3001;

  static void produce(Path directory) throws Exception {
    Files.createDirectories(directory.resolve("files"));
    for (int file = 0; file < FILES; file++) {
      List<String> words = new ArrayList<>();
      for (int i = file * PER_FILE; i < (file + 1) * PER_FILE; i++) {
        words.add("word-" + i % WORDS);
      }
      Path path = directory.resolve("files/" + file);
      Files.write(path, words);
      // Spark reads files in the order of their times.
      Files.setLastModifiedTime(path, FileTime.fromMillis(1_700_000_000_000L + file * 1000));
    }
  }

  /** The counts that a batch changed: a file that a repeated batch replaces. */
  static void write(Path counts, Dataset<Row> changed, long batch) throws Exception {
    List<String> lines = new ArrayList<>();
    for (Row row : changed.collectAsList()) {
      lines.add(row.getString(0) + " " + row.getLong(1));
    }
    Path draft = counts.resolveSibling("draft");
    Files.write(draft, lines);
    Files.move(draft, counts.resolve("" + batch), StandardCopyOption.ATOMIC_MOVE);
  }

  static void count(Path directory) throws Exception {
    Path counts = directory.resolve("counts");
    SparkSession spark = SparkSession.builder().getOrCreate();
    StreamingQuery query = spark.readStream().option("maxFilesPerTrigger", 1)
        .text(directory + "/files")
        .groupBy("value").count()
        .writeStream().outputMode("update").trigger(Trigger.AvailableNow())
        .option("checkpointLocation", directory + "/checkpoint")
        .foreachBatch((VoidFunction2<Dataset<Row>, Long>) (changed, batch) ->
            write(counts, changed, batch))
        .start();
    query.awaitTermination();
    spark.stop();
  }

  /** After each batch, each word has been counted as often as it is in the files until there. */
  static int wrong(Path directory) throws Exception {
    Map<String, Long> counts = new HashMap<>();
    int wrong = 0;
    for (int file = 0; file < FILES; file++) {
      for (String line : Files.readAllLines(directory.resolve("counts/" + file))) {
        String[] parts = line.split(" ");
        counts.put(parts[0], Long.valueOf(parts[1]));
      }
      int words = (file + 1) * PER_FILE;
      for (int word = 0; word < WORDS; word++) {
        long expected = words / WORDS + (word < words % WORDS ? 1 : 0);
        wrong += counts.getOrDefault("word-" + word, 0L) == expected ? 0 : 1;
      }
    }
    System.out.println(FILES + " batches, " + counts.size() + " words, " + wrong + " counts wrong");
    return wrong;
  }

  public static void main(String[] a) throws Exception {
    Path directory = Path.of(a[1]);
    if (a[0].equals("produce")) {
      produce(directory);
      return;
    }
    count(directory);
    System.exit(wrong(directory) == 0 ? 0 : 1);
  }
}
