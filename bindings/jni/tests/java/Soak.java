import java.io.*;
import java.nio.ByteBuffer;
import java.nio.file.*;
import java.util.*;
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

  static void points(RocksDB db, int times) throws Exception {
    byte[] key = "0123456789abcdef".getBytes();
    byte[] value = new byte[16];
    try (WriteOptions write = new WriteOptions().setDisableWAL(true);
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
      many("get into an array", times, i -> db.get(read, key, value));
      many("may exist", times, i -> db.keyMayExist(key, new Holder<>()));
      many("several gets", times, i -> db.multiGetAsList(Arrays.asList(key, value)));
      ByteBuffer direct = ByteBuffer.allocateDirect(16);
      ByteBuffer room = ByteBuffer.allocateDirect(64);
      many("put by a buffer", times, i -> {
        direct.clear();
        room.clear().limit(16);
        db.put(write, direct, room);
      });
      many("get by a buffer", times, i -> {
        direct.clear();
        room.clear();
        db.get(read, direct, room);
      });
      many("merge", times, i -> {
        // Each chain of operands ends soon.
        if (i % 8 == 0) {
          db.put(write, key, value);
        }
        db.merge(write, key, value);
      });
      many("delete", times, i -> db.delete(write, key));
      many("single delete", times, i -> {
        db.put(write, key, value);
        db.singleDelete(write, key);
      });
      many("delete a range", times / 1000, i -> {
        key[15] = 0;
        byte[] end = key.clone();
        end[15] = 9;
        db.deleteRange(write, key, end);
      });
      many("batch", times, i -> {
        try (WriteBatch batch = new WriteBatch()) {
          batch.put(key, value);
          db.write(write, batch);
        }
      });
      many("walk over a batch", times, i -> {
        try (WriteBatch batch = new WriteBatch();
            WriteBatch.Handler handler = new Groups.Teller(new StringBuilder())) {
          batch.put(key, value);
          batch.iterate(handler);
        }
      });
    }
  }

  static void reads(RocksDB db, int times) throws Exception {
    byte[] key = "0123456789abcdef".getBytes();
    for (int i = 0; i < 1000; i++) {
      db.put(("key" + i).getBytes(), key);
    }
    try (ReadOptions read = new ReadOptions(); RocksIterator all = db.newIterator()) {
      all.seekToFirst();
      many("iterate", times, i -> {
        all.key();
        all.value();
        all.next();
        if (!all.isValid()) {
          all.seekToFirst();
        }
      });
      many("iterator", times, i -> {
        try (RocksIterator it = db.newIterator(read)) {
          it.seek(key);
          it.isValid();
        }
      });
    }
    many("snapshot", times, i -> db.releaseSnapshot(db.getSnapshot()));
    many("options", times, i -> {
      try (ReadOptions o = new ReadOptions()) {
        o.setFillCache(false);
      }
    });
    many("slice", times, i -> {
      try (Slice slice = new Slice(key); DirectSlice direct = new DirectSlice("direct")) {
        slice.data();
        direct.size();
      }
    });
    many("property", times / 10, i -> db.getProperty("rocksdb.stats"));
    many("exception", times / 10, i -> {
      try {
        db.getProperty("rocksdb.none");
      } catch (RocksDBException e) {
        // As expected.
      }
    });
  }

  /** The work that goes on for longer: a thousandth of the operations. */
  static void stores(String dir, RocksDB db, int times) throws Exception {
    byte[] key = "0123456789abcdef".getBytes();
    many("family", times, i -> {
      try (ColumnFamilyOptions o = new ColumnFamilyOptions();
          ColumnFamilyHandle f = db.createColumnFamily(new ColumnFamilyDescriptor(key, o))) {
        db.put(f, key, key);
        db.dropColumnFamily(f);
      }
    });
    many("flush", times, i -> {
      db.put(key, key);
      try (FlushOptions flush = new FlushOptions()) {
        db.flush(flush);
      }
    });
    many("lists of files", times, i -> {
      db.getLiveFilesMetaData();
      db.getColumnFamilyMetaData();
      db.getPropertiesOfAllTables();
    });
    many("checkpoint", times, i -> {
      try (Checkpoint checkpoint = Checkpoint.create(db)) {
        checkpoint.createCheckpoint(new File(dir, "c" + System.nanoTime()).getPath());
      }
    });
    String table = new File(dir, "table.sst").getPath();
    many("table", times, i -> {
      try (EnvOptions files = new EnvOptions(); Options o = new Options();
          SstFileWriter writer = new SstFileWriter(files, o);
          IngestExternalFileOptions ingest = new IngestExternalFileOptions().setMoveFiles(true)) {
        writer.open(table);
        writer.put(key, key);
        writer.finish();
        db.ingestExternalFile(Collections.singletonList(table), ingest);
      }
    });
    many("store", times, i -> {
      try (Options o = new Options().setCreateIfMissing(true);
          RocksDB small = RocksDB.open(o, new File(dir, "small").getPath())) {
        small.put(key, key);
      }
    });
  }

  /** Objects of Java that the library calls. */
  static void upcalls(String dir, int times) throws Exception {
    byte[] key = "0123456789abcdef".getBytes();
    try (ComparatorOptions how = new ComparatorOptions();
        AbstractComparator order = new Order(how);
        Statistics statistics = new Statistics();
        Options options = new Options().setCreateIfMissing(true).setComparator(order)
            .setStatistics(statistics).setWriteBufferSize(1 << 20);
        RocksDB db = RocksDB.open(options, new File(dir, "upcalls").getPath())) {
      many("comparator", times, i -> {
        key[15] = (byte) i;
        db.put(key, key);
        db.get(key);
      });
      many("ticker", times, i -> statistics.getTickerCount(TickerType.BYTES_READ));
      many("histogram", times, i -> statistics.getHistogramData(HistogramType.DB_GET));
    }
  }

  static class Order extends AbstractComparator {
    Order(ComparatorOptions how) {
      super(how);
    }

    @Override
    public String name() {
      return "soak.order";
    }

    @Override
    public int compare(ByteBuffer a, ByteBuffer b) {
      return a.compareTo(b);
    }
  }

  public static void main(String[] args) throws Exception {
    RocksDB.loadLibrary();
    int times = args.length > 1 ? Integer.parseInt(args[1]) : 1_000_000;
    try (StringAppendOperator append = new StringAppendOperator();
        Options options = new Options().setCreateIfMissing(true).setWriteBufferSize(8 << 20)
            .setMergeOperator(append);
        RocksDB db = RocksDB.open(options, new File(args[0], "soak").getPath())) {
      points(db, times);
      reads(db, times);
      stores(args[0], db, Math.max(times / 1000, 5));
    }
    transactions(args[0], times);
    upcalls(args[0], times / 10);
    if (failed) {
      throw new AssertionError("memory grew");
    }
  }
}
