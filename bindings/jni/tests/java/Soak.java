import java.io.*;
import java.nio.file.*;
import org.rocksdb.*;

/** A million operations of each kind: the memory of the process must stay where it was. */
public class Soak {
  static long rss() throws IOException {
    for (String line : Files.readAllLines(Paths.get("/proc/self/status"))) {
      if (line.startsWith("VmRSS:")) {
        return Long.parseLong(line.replaceAll("[^0-9]", "")) / 1024;
      }
    }
    return 0;
  }

  interface Body {
    void run(int i) throws Exception;
  }

  static boolean failed;

  static void many(String what, int times, Body body) throws Exception {
    for (int i = 0; i < times / 5; i++) {
      body.run(i);
    }
    System.gc();
    long before = rss();
    long begin = System.nanoTime();
    for (int i = 0; i < times; i++) {
      body.run(i);
    }
    long ns = (System.nanoTime() - begin) / times;
    System.gc();
    long after = rss();
    System.out.printf("%-24s %6d ns each, RSS %d MB -> %d MB%n", what, ns, before, after);
    failed |= after > before + 48;
  }

  static void transactions(String dir, int times) throws Exception {
    byte[] key = "0123456789abcdef".getBytes();
    try (Options options = new Options().setCreateIfMissing(true).setWriteBufferSize(1 << 20);
        TransactionDBOptions how = new TransactionDBOptions();
        TransactionDB db = TransactionDB.open(options, how, new File(dir, "locking").getPath());
        WriteOptions write = new WriteOptions().setDisableWAL(true);
        ReadOptions read = new ReadOptions()) {
      many("transaction", times, i -> {
        key[15] = (byte) i;
        try (Transaction t = db.beginTransaction(write)) {
          t.setSnapshot();
          t.getSnapshot().getSequenceNumber();
          t.put(key, key);
          t.getForUpdate(read, key, true);
          t.getWriteBatch().getWriteBatch().count();
          t.commit();
        }
      });
      many("records of a batch", times, i -> {
        try (WriteBatchWithIndex batch = new WriteBatchWithIndex(true)) {
          batch.put(key, key);
          try (WBWIRocksIterator it = batch.newIterator()) {
            it.seekToFirst();
            it.entry().getKey().size();
          }
        }
      });
    }
  }

  public static void main(String[] args) throws Exception {
    RocksDB.loadLibrary();
    int times = args.length > 1 ? Integer.parseInt(args[1]) : 1_000_000;
    byte[] key = "0123456789abcdef".getBytes();
    byte[] value = new byte[args.length > 2 ? Integer.parseInt(args[2]) : 16];
    try (Options options = new Options().setCreateIfMissing(true).setWriteBufferSize(8 << 20);
        RocksDB db = RocksDB.open(options, new File(args[0], "soak").getPath());
        WriteOptions write = new WriteOptions().setDisableWAL(true);
        ReadOptions read = new ReadOptions()) {
      many("put", times, i -> {
        key[15] = (byte) i;
        key[14] = (byte) (i >> 8);
        db.put(write, key, value);
      });
      many("get", times, i -> {
        key[15] = (byte) i;
        key[14] = (byte) (i >> 8);
        db.get(read, key);
      });
      try (RocksIterator all = db.newIterator()) {
        all.seekToFirst();
        many("iterate", times, i -> {
          all.key();
          all.value();
          all.next();
          if (!all.isValid()) {
            all.seekToFirst();
          }
        });
      }
      many("iterator", times, i -> {
        try (RocksIterator it = db.newIterator(read)) {
          it.seek(key);
          it.isValid();
        }
      });
      many("batch", times, i -> {
        try (WriteBatch batch = new WriteBatch()) {
          batch.put(key, value);
          db.write(write, batch);
        }
      });
      many("snapshot", times, i -> db.releaseSnapshot(db.getSnapshot()));
      many("options", times, i -> {
        try (ReadOptions o = new ReadOptions()) {
          o.setFillCache(false);
        }
      });
      many("exception", times / 10, i -> {
        try {
          db.getProperty("rocksdb.none");
        } catch (RocksDBException e) {
          // As expected.
        }
      });
    }
    transactions(args[0], times / 10);
    if (failed) {
      throw new AssertionError("memory grew");
    }
  }
}
