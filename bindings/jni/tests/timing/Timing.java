import java.io.File;
import java.util.*;
import org.rocksdb.*;

/**
 * Times puts, gets and walks through Java, and the life of small stores. Prints one line for each:
 * name, operations a second. The arguments are an empty directory and a count of keys, 0 for the
 * stores alone.
 */
public class Timing {
  static byte[] key(long n) {
    long mixed = n * 0x9E3779B97F4A7C15L;
    byte[] key = new byte[16];
    for (int i = 0; i < 8; i++) {
      key[i] = (byte) (mixed >> (8 * i));
      key[8 + i] = (byte) (n >> (8 * i));
    }
    return key;
  }

  static void say(String what, long count, long began, long ended) {
    System.out.printf("%s %.0f%n", what, count * 1e9 / (ended - began));
  }

  static void say(String what, long count, long began) {
    say(what, count, began, System.nanoTime());
  }

  static void values(String dir, int keys, int bytes) throws RocksDBException {
    String name = bytes + "-byte";
    try (Options options = new Options().setCreateIfMissing(true);
        WriteOptions write = new WriteOptions().setDisableWAL(true);
            ReadOptions read = new ReadOptions();
        RocksDB db = RocksDB.open(options, new File(dir, name).getPath())) {
      byte[] value = new byte[bytes];
      new Random(1).nextBytes(value);
      long began = System.nanoTime();
      for (int i = 0; i < keys; i++) {
        db.put(write, key(i), value);
      }
      say("put-" + name, keys, began);
      db.compactRange();
      for (int round = 0; round < 2; round++) {
        began = System.nanoTime();
        for (int i = 0; i < keys; i++) {
          if (db.get(read, key((i * 7919L) % keys)).length != bytes) {
            throw new AssertionError();
          }
        }
        // The first round fills the cache and lets the JVM compile.
        if (round == 1) {
          say("get-" + name, keys, began);
        }
      }
      for (int round = 0; round < 2; round++) {
        began = System.nanoTime();
        long seen = 0;
        try (RocksIterator it = db.newIterator(read)) {
          for (it.seekToFirst(); it.isValid(); it.next()) {
            seen += it.key().length + it.value().length > 0 ? 1 : 0;
          }
        }
        if (seen != keys) {
          throw new AssertionError("saw " + seen);
        }
        if (round == 1) {
          say("iterate-" + name, keys, began);
        }
      }
    }
  }

  /** Opens, fills, flushes and closes small stores: the whole, and what each part takes. */
  static void stores(String dir, int count) throws RocksDBException {
    long began = System.nanoTime();
    List<RocksDB> open = new ArrayList<>();
    long opened;
    long flushed;
    try (Options options = new Options().setCreateIfMissing(true);
        FlushOptions flush = new FlushOptions().setWaitForFlush(true);
        WriteOptions write = new WriteOptions().setDisableWAL(true)) {
      for (int i = 0; i < count; i++) {
        open.add(RocksDB.open(options, new File(dir, "store-" + i).getPath()));
      }
      opened = System.nanoTime();
      for (RocksDB db : open) {
        for (int i = 0; i < 100; i++) {
          db.put(write, key(i), key(i));
        }
        db.flush(flush);
      }
      flushed = System.nanoTime();
      for (RocksDB db : open) {
        db.close();
      }
    }
    long closed = System.nanoTime();
    say("stores", count, began, closed);
    say("stores-open", count, began, opened);
    say("stores-flush", count, opened, flushed);
    say("stores-close", count, flushed, closed);
  }

  public static void main(String[] args) throws RocksDBException {
    RocksDB.loadLibrary();
    int keys = Integer.parseInt(args[1]);
    stores(args[0], Integer.getInteger("stores", 100));
    if (keys == 0) {
      return;
    }
    values(args[0], keys, 16);
    values(args[0], keys / 4, 1024);
  }
}
