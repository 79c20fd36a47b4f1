import java.io.File;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.*;
import org.rocksdb.*;

/**
 * The answers of each group of methods, printed: the stock library is the oracle, whose output must be
 * the same.
 * The argument is a directory that is empty.
 */
public class Groups {
  static String dir;

  static byte[] b(String s) {
    return s.getBytes(StandardCharsets.UTF_8);
  }

  static String s(byte[] bytes) {
    return bytes == null ? "null" : new String(bytes, StandardCharsets.UTF_8);
  }

  static void say(String what, Object... values) {
    System.out.println(what + ": " + Arrays.deepToString(values));
  }

  interface Body {
    Object run() throws Exception;
  }

  /** The answer, or the exception with its status: code, subcode, text. */
  static void tell(String what, Body body) {
    try {
      Object answer = body.run();
      say(what, answer instanceof byte[] ? s((byte[]) answer) : answer);
    } catch (RocksDBException e) {
      Status status = e.getStatus();
      say(what, "RocksDBException", status == null ? null : status.getCode(),
          status == null ? null : status.getSubCode());
    } catch (Throwable e) {
      say(what, e.getClass().getName());
    }
  }

  /**
   * As {@link #tell}, with the text of the exception. Ours may go on where the stock library's
   * ends.
   */
  static void tellAll(String what, String begin, Body body) {
    tell(what, () -> {
      try {
        return body.run();
      } catch (RocksDBException e) {
        String state = e.getStatus().getState();
        boolean isSame = state == null || state.equals(e.getMessage());
        say(what + " says", begin, e.getMessage().startsWith(begin), isSame);
        throw e;
      }
    });
  }

  static String path(String name) {
    return new File(dir, name).getPath();
  }

  static void points() throws Exception {
    try (Options options = new Options().setCreateIfMissing(true);
        RocksDB db = RocksDB.open(options, path("points"));
        ReadOptions read = new ReadOptions();
        WriteOptions write = new WriteOptions()) {
      db.put(b("a"), b("1"));
      db.put(write, b("b"), b("2"));
      db.put(b("empty"), new byte[0]);
      say("get", s(db.get(b("a"))), s(db.get(read, b("b"))), s(db.get(b("c"))),
          s(db.get(b("empty"))));
      byte[] room = new byte[3];
      say("get into", db.get(b("a"), room), s(room).trim(), db.get(b("none"), room));
      db.put(b("long"), b("0123456789"));
      say("get into too little", db.get(b("long"), room), s(room));
      db.delete(b("a"));
      db.singleDelete(b("b"));
      say("deleted", s(db.get(b("a"))), s(db.get(b("b"))));
      db.put(b("xkeyx"), 1, 3, b("xvaluex"), 1, 5);
      say("parts", s(db.get(b("key"))), s(db.get(b("xkeyx"), 1, 3)));
      for (int i = 0; i < 20; i++) {
        db.put(b("r" + (char) ('a' + i)), b("" + i));
      }
      db.deleteRange(b("rc"), b("rf"));
      say("range", s(db.get(b("rb"))), s(db.get(b("rc"))), s(db.get(b("re"))), s(db.get(b("rf"))));
      List<byte[]> found = db.multiGetAsList(Arrays.asList(b("key"), b("none"), b("ra")));
      say("multi get", found.stream().map(Groups::s).toArray());
      say("key exists", db.keyExists(b("key")), db.keyExists(b("none")));
      say("key may exist", db.keyMayExist(b("key"), null));
      ByteBuffer key = ByteBuffer.allocateDirect(16);
      ByteBuffer value = ByteBuffer.allocateDirect(16);
      key.put(b("direct")).flip();
      value.put(b("buffer")).flip();
      db.put(write, key, value);
      key.position(0);
      ByteBuffer to = ByteBuffer.allocateDirect(4);
      say("direct", db.get(read, key, to), to.position(), to.limit());
      tell("offset past the end", () -> {
        db.put(b("k"), 5, 3, b("v"), 0, 1);
        return null;
      });
      tell("null key", () -> db.get((byte[]) null));
      say("sequence", db.getLatestSequenceNumber());
      byte[] big = new byte[100_000];
      Arrays.fill(big, (byte) 'z');
      db.put(big, big);
      say("big", db.get(big).length);
    }
  }

  static void iterators() throws Exception {
    try (Options options = new Options().setCreateIfMissing(true);
        RocksDB db = RocksDB.open(options, path("iterators"))) {
      for (int i = 0; i < 100; i++) {
        db.put(b(String.format("k%03d", i)), b("v" + i));
      }
      try (FlushOptions flush = new FlushOptions().setWaitForFlush(true)) {
        db.flush(flush);
      }
      try (RocksIterator it = db.newIterator()) {
        int count = 0;
        for (it.seekToFirst(); it.isValid(); it.next()) {
          count++;
        }
        it.status();
        say("forward", count);
        count = 0;
        for (it.seekToLast(); it.isValid(); it.prev()) {
          count++;
        }
        say("back", count);
        it.seek(b("k050x"));
        say("seek", s(it.key()), s(it.value()));
        it.seekForPrev(b("k050x"));
        say("seek for prev", s(it.key()), s(it.value()));
        ByteBuffer target = ByteBuffer.allocateDirect(8);
        target.put(b("k070")).flip();
        it.seek(target);
        ByteBuffer to = ByteBuffer.allocateDirect(16);
        int n = it.key(to);
        say("direct", n, to.remaining());
        it.seek(b("z"));
        say("past the end", it.isValid());
        db.put(b("k999"), b("new"));
        it.refresh();
        it.seekToLast();
        say("refreshed", s(it.key()));
      }
      try (Slice lower = new Slice("k010"); Slice upper = new Slice("k020");
          ReadOptions read = new ReadOptions().setIterateLowerBound(lower)
              .setIterateUpperBound(upper);
          RocksIterator it = db.newIterator(read)) {
        it.seekToFirst();
        String first = s(it.key());
        it.seekToLast();
        say("bounds", first, s(it.key()));
      }
    }
  }

  static void families() throws Exception {
    List<ColumnFamilyHandle> handles = new ArrayList<>();
    try (DBOptions options = new DBOptions().setCreateIfMissing(true)
        .setCreateMissingColumnFamilies(true);
        ColumnFamilyOptions family = new ColumnFamilyOptions()) {
      List<ColumnFamilyDescriptor> descriptors = Arrays.asList(
          new ColumnFamilyDescriptor(RocksDB.DEFAULT_COLUMN_FAMILY, family),
          new ColumnFamilyDescriptor(b("one"), family));
      try (RocksDB db = RocksDB.open(options, path("families"), descriptors, handles)) {
        db.put(handles.get(1), b("k"), b("in one"));
        say("families", s(db.get(handles.get(1), b("k"))), s(db.get(handles.get(0), b("k"))));
        ColumnFamilyHandle two = db.createColumnFamily(
            new ColumnFamilyDescriptor(b("two"), family));
        db.put(two, b("k"), b("in two"));
        say("names", s(handles.get(1).getName()), s(two.getName()), two.getID());
        db.dropColumnFamily(two);
        tell("a dropped family", () -> db.get(two, b("k")));
        two.close();
        tellAll("made twice", "Column family already exists",
            () -> db.createColumnFamily(new ColumnFamilyDescriptor(b("one"), family)));
        for (ColumnFamilyHandle handle : handles) {
          handle.close();
        }
      }
      try (Options plain = new Options()) {
        say("list", RocksDB.listColumnFamilies(plain, path("families")).stream().map(Groups::s)
            .toArray());
        say("list nothing", RocksDB.listColumnFamilies(plain, path("nothing")).size());
        tell("not all families", () -> RocksDB.open(plain, path("families")));
      }
    }
  }

  static void batches() throws Exception {
    try (Options options = new Options().setCreateIfMissing(true)
        .setMergeOperator(new StringAppendOperator());
        RocksDB db = RocksDB.open(options, path("batches"));
        WriteOptions write = new WriteOptions()) {
      try (WriteBatch batch = new WriteBatch()) {
        batch.put(b("a"), b("1"));
        batch.setSavePoint();
        batch.put(b("b"), b("2"));
        batch.rollbackToSavePoint();
        batch.merge(b("m"), b("x"));
        batch.merge(b("m"), b("y"));
        batch.delete(b("gone"));
        batch.singleDelete(b("gone too"));
        batch.deleteRange(b("r"), b("s"));
        batch.putLogData(b("blob"));
        say("batch", batch.count(), batch.hasPut(), batch.hasMerge(), batch.hasDelete(),
            batch.getDataSize());
        StringBuilder told = new StringBuilder();
        batch.iterate(new Teller(told));
        say("records", told.toString());
        db.write(write, batch);
        say("written", s(db.get(b("a"))), s(db.get(b("b"))), s(db.get(b("m"))));
        try (WriteBatch copy = new WriteBatch(batch.data())) {
          say("copy", copy.count());
        }
        tell("no save point", () -> {
          batch.rollbackToSavePoint();
          return null;
        });
      }
      try (WriteBatchWithIndex batch = new WriteBatchWithIndex(true);
          ReadOptions read = new ReadOptions();
          DBOptions dbOptions = new DBOptions()) {
        batch.put(b("a"), b("over"));
        batch.put(b("i"), b("only in the batch"));
        say("indexed", s(batch.getFromBatch(dbOptions, b("a"))),
            s(batch.getFromBatchAndDB(db, read, b("m"))));
        try (RocksIterator it = batch.newIteratorWithBase(db.newIterator())) {
          StringBuilder all = new StringBuilder();
          for (it.seekToFirst(); it.isValid(); it.next()) {
            all.append(s(it.key())).append('=').append(s(it.value())).append(' ');
          }
          say("merged", all.toString());
        }
        db.write(write, batch);
        say("indexed written", s(db.get(b("a"))));
      }
    }
  }

  static class Teller extends WriteBatch.Handler {
    final StringBuilder out;

    Teller(StringBuilder out) {
      this.out = out;
    }

    void add(String what, byte[]... parts) {
      out.append(what);
      for (byte[] part : parts) {
        out.append(' ').append(s(part));
      }
      out.append("; ");
    }

    public void put(int f, byte[] k, byte[] v) { add("put" + f, k, v); }
    public void put(byte[] k, byte[] v) { add("put", k, v); }
    public void merge(int f, byte[] k, byte[] v) { add("merge" + f, k, v); }
    public void merge(byte[] k, byte[] v) { add("merge", k, v); }
    public void delete(int f, byte[] k) { add("delete" + f, k); }
    public void delete(byte[] k) { add("delete", k); }
    public void singleDelete(int f, byte[] k) { add("single" + f, k); }
    public void singleDelete(byte[] k) { add("single", k); }
    public void deleteRange(int f, byte[] x, byte[] y) { add("range" + f, x, y); }
    public void deleteRange(byte[] x, byte[] y) { add("range", x, y); }
    public void logData(byte[] blob) { add("log", blob); }
    public void putBlobIndex(int f, byte[] k, byte[] v) { add("blob", k, v); }
    public void markBeginPrepare() { add("begin"); }
    public void markEndPrepare(byte[] x) { add("end", x); }
    public void markNoop(boolean empty) { add("noop"); }
    public void markRollback(byte[] x) { add("rollback", x); }
    public void markCommit(byte[] x) { add("commit", x); }
    public void markCommitWithTimestamp(byte[] x, byte[] t) { add("commit", x, t); }
  }

  static void snapshots() throws Exception {
    try (Options options = new Options().setCreateIfMissing(true);
        RocksDB db = RocksDB.open(options, path("snapshots"))) {
      db.put(b("k"), b("before"));
      Snapshot snapshot = db.getSnapshot();
      db.put(b("k"), b("after"));
      try (ReadOptions read = new ReadOptions().setSnapshot(snapshot)) {
        say("snapshot", s(db.get(read, b("k"))), s(db.get(b("k"))), snapshot.getSequenceNumber());
      }
      db.releaseSnapshot(snapshot);
      try (Checkpoint checkpoint = Checkpoint.create(db)) {
        checkpoint.createCheckpoint(path("checkpoint"));
        tell("a checkpoint in a directory", () -> {
          checkpoint.createCheckpoint(path("checkpoint"));
          return null;
        });
      }
      try (RocksDB copy = RocksDB.openReadOnly(path("checkpoint"))) {
        say("checkpoint", s(copy.get(b("k"))));
        tellAll("a write to a reader", "Not supported", () -> {
          copy.put(b("k"), b("v"));
          return null;
        });
      }
    }
  }

  static void lifetimes() throws Exception {
    try (Options options = new Options().setCreateIfMissing(true);
        TtlDB db = TtlDB.open(options, path("ttl"), 100, false);
        ColumnFamilyOptions family = new ColumnFamilyOptions()) {
      db.put(b("k"), b("v"));
      say("ttl", s(db.get(b("k"))));
      ColumnFamilyHandle one =
          db.createColumnFamilyWithTtl(new ColumnFamilyDescriptor(b("one"), family), 50);
      db.put(one, b("k"), b("w"));
      say("ttl family", s(db.get(one, b("k"))));
      one.close();
    }
  }

  static void tables() throws Exception {
    try (Options options = new Options().setCreateIfMissing(true);
        EnvOptions files = new EnvOptions();
        SstFileWriter writer = new SstFileWriter(files, options)) {
      writer.open(path("table.sst"));
      writer.put(b("k1"), b("v1"));
      writer.put(b("k2"), b("v2"));
      tell("out of order", () -> {
        writer.put(b("k0"), b("v0"));
        return null;
      });
      writer.finish();
      try (RocksDB db = RocksDB.open(options, path("tables"));
          IngestExternalFileOptions ingest = new IngestExternalFileOptions()) {
        db.ingestExternalFile(Arrays.asList(path("table.sst")), ingest);
        say("ingested", s(db.get(b("k1"))), s(db.get(b("k2"))));
        LiveFileMetaData file = db.getLiveFilesMetaData().get(0);
        say("live", s(file.columnFamilyName()), s(file.smallestKey()), s(file.largestKey()));
        db.deleteFilesInRanges(
            db.getDefaultColumnFamily(), Arrays.asList(b("k"), b("l")), true);
        say("deleted", s(db.get(b("k1"))));
      }
    }
  }

  static void failures() throws Exception {
    try (Options options = new Options()) {
      tell("no database", () -> RocksDB.open(options, path("none")));
    }
    try (Options options = new Options().setCreateIfMissing(true)) {
      try (RocksDB db = RocksDB.open(options, path("failures"))) {
        tell("opened twice", () -> RocksDB.open(options, path("failures")));
        tellAll("no such property", "NotFound", () -> db.getProperty("rocksdb.none"));
        tell("no such number", () -> db.getLongProperty("rocksdb.none"));
        tell("no merge operator", () -> {
          db.merge(b("k"), b("v"));
          return db.get(b("k"));
        });
      }
      try (Options strict = new Options().setCreateIfMissing(true).setErrorIfExists(true)) {
        tell("exists", () -> RocksDB.open(strict, path("failures")));
      }
      RocksDB.destroyDB(path("failures"), options);
      say("destroyed", new File(path("failures"), "CURRENT").exists());
    }
  }

  static void options() throws Exception {
    try (Options o = new Options(); LRUCache cache = new LRUCache(8 << 20);
        WriteBufferManager buffers = new WriteBufferManager(4 << 20, cache)) {
      say("defaults", o.writeBufferSize(), o.maxWriteBufferNumber(), o.compactionStyle(),
          o.numLevels(), o.maxBackgroundJobs(), o.createIfMissing(), o.maxOpenFiles(),
          o.targetFileSizeBase());
      o.setWriteBufferSize(1 << 20).setMaxWriteBufferNumber(3)
          .setCompactionStyle(CompactionStyle.UNIVERSAL)
          .setCompressionType(CompressionType.NO_COMPRESSION)
          .setInfoLogLevel(InfoLogLevel.ERROR_LEVEL)
          .setMaxOpenFiles(10).setUseFsync(true).setWalTtlSeconds(5)
          .setLevelZeroStopWritesTrigger(50);
      o.setTableFormatConfig(new BlockBasedTableConfig().setBlockCache(cache).setBlockSize(8192)
          .setFilterPolicy(new BloomFilter(10)).setCacheIndexAndFilterBlocks(true));
      o.setWriteBufferManager(buffers);
      say("set", o.writeBufferSize(), o.maxWriteBufferNumber(), o.compactionStyle(),
          o.compressionType(), o.infoLogLevel(), o.maxOpenFiles(), o.useFsync(),
          o.walTtlSeconds(), o.levelZeroStopWritesTrigger(),
          o.tableFactoryName(), o.memTableFactoryName());
      o.setCreateIfMissing(true).setCompressionPerLevel(
          Arrays.asList(CompressionType.NO_COMPRESSION, CompressionType.LZ4_COMPRESSION));
      say("lists", o.compressionPerLevel());
      o.optimizeForSmallDb();
      say("small", o.writeBufferSize(), o.maxBytesForLevelBase());
      try (RocksDB db = RocksDB.open(o, path("options"))) {
        db.put(b("k"), b("v"));
        say("opened", s(db.get(b("k"))), cache.getUsage() >= 0, cache.getPinnedUsage() >= 0);
        say("numbers", db.getLongProperty("rocksdb.num-entries-active-mem-table"),
            db.getAggregatedLongProperty("rocksdb.num-entries-active-mem-table"));
      }
      try (DBOptions db = new DBOptions(o); ColumnFamilyOptions cf = new ColumnFamilyOptions(o);
          Options both = new Options(db, cf)) {
        say("copies", both.writeBufferSize(), both.maxOpenFiles());
      }
    }
    try (ReadOptions r = new ReadOptions(); WriteOptions w = new WriteOptions();
        FlushOptions f = new FlushOptions(); CompactRangeOptions c = new CompactRangeOptions()) {
      say("calls", r.verifyChecksums(), r.fillCache(), r.tailing(), r.readTier(), w.sync(),
          w.disableWAL(),
          f.waitForFlush(), c.changeLevel(), c.targetLevel(), c.bottommostLevelCompaction());
      r.setFillCache(false).setTailing(true).setReadTier(ReadTier.BLOCK_CACHE_TIER);
      w.setSync(true).setDisableWAL(true).setNoSlowdown(true);
      say("calls set", r.fillCache(), r.tailing(), r.readTier(), w.sync(), w.disableWAL(),
          w.noSlowdown());
    }
  }

  static void statistics() throws Exception {
    try (Statistics statistics = new Statistics();
        Options options = new Options().setCreateIfMissing(true).setStatistics(statistics);
        RocksDB db = RocksDB.open(options, path("statistics"))) {
      for (int i = 0; i < 10; i++) {
        db.put(b("k" + i), b("v"));
        db.get(b("k" + i));
      }
      say("tickers", statistics.getTickerCount(TickerType.NUMBER_KEYS_WRITTEN),
          statistics.getTickerCount(TickerType.NUMBER_KEYS_READ),
          statistics.getTickerCount(TickerType.MEMTABLE_HIT));
      HistogramData data = statistics.getHistogramData(HistogramType.DB_WRITE);
      say("histogram", data.getCount());
      say("reset one", statistics.getAndResetTickerCount(TickerType.NUMBER_KEYS_WRITTEN),
          statistics.getTickerCount(TickerType.NUMBER_KEYS_WRITTEN));
      for (TickerType type : TickerType.values()) {
        if (type != TickerType.TICKER_ENUM_MAX) {
          statistics.getTickerCount(type);
        }
      }
      statistics.reset();
      say("reset", statistics.getTickerCount(TickerType.NUMBER_KEYS_READ));
    }
  }

  static void callbacks() throws Exception {
    final Set<String> levels = Collections.synchronizedSet(new TreeSet<>());
    try (ComparatorOptions comparing = new ComparatorOptions();
        AbstractComparator reverse = new AbstractComparator(comparing) {
          public String name() { return "test.reverse"; }
          public int compare(ByteBuffer x, ByteBuffer y) { return y.compareTo(x); }
        };
        Options options = new Options().setCreateIfMissing(true).setComparator(reverse);
        Logger logger = new Logger(InfoLogLevel.INFO_LEVEL) {
          protected void log(InfoLogLevel level, String line) {
            levels.add(level.name() + (line.contains("RocksDB version:") ? " version" : ""));
          }
        }) {
      options.setLogger(logger);
      try (RocksDB db = RocksDB.open(options, path("callbacks"))) {
        for (int i = 0; i < 10; i++) {
          db.put(b("k" + i), b("" + i));
        }
        db.compactRange();
        try (RocksIterator it = db.newIterator()) {
          it.seekToFirst();
          say("reverse", s(it.key()));
        }
      }
      levels.retainAll(Arrays.asList("INFO_LEVEL", "INFO_LEVEL version", "HEADER_LEVEL"));
      say("logged", levels);
    }
    try (RemoveEmptyValueCompactionFilter filter = new RemoveEmptyValueCompactionFilter();
        Options options = new Options().setCreateIfMissing(true).setCompactionFilter(filter);
        RocksDB db = RocksDB.open(options, path("filter"))) {
      db.put(b("empty"), new byte[0]);
      db.put(b("full"), b("v"));
      db.compactRange();
      say("filtered", s(db.get(b("empty"))), s(db.get(b("full"))));
    }
  }

  /**
   * The code of the exception;
   * Esker gives no subcode where RocksDB says that a path is missing.
   */
  static Object code(Body body) throws Exception {
    try {
      return body.run();
    } catch (RocksDBException e) {
      return e.getStatus().getCode();
    }
  }

  /** Options read back from the files that a database writes. */
  static void optionsFiles() throws Exception {
    say("no options", code(() ->
        OptionsUtil.getLatestOptionsFileName(path("none"), Env.getDefault())));
    BlockBasedTableConfig table = new BlockBasedTableConfig();
    table.setBlockSize(8192).setFilterPolicy(new BloomFilter(12)).setFormatVersion(5)
        .setCacheIndexAndFilterBlocks(true).setChecksumType(ChecksumType.kxxHash64);
    try (Options options = new Options().setCreateIfMissing(true).setMaxBackgroundJobs(7)
             .setWriteBufferSize(3 << 20).setTableFormatConfig(table);
        RocksDB db = RocksDB.open(options, path("options"));
        ColumnFamilyOptions more = new ColumnFamilyOptions().setNumLevels(5)) {
      ColumnFamilyHandle made = db.createColumnFamily(new ColumnFamilyDescriptor(b("more"), more));
      ColumnFamilyDescriptor told = made.getDescriptor();
      say("descriptor", s(told.getName()), told.getOptions().numLevels());
      told.getOptions().close();
      made.close();
    }
    String name = OptionsUtil.getLatestOptionsFileName(path("options"), Env.getDefault());
    say("options file", name.startsWith("OPTIONS-"));
    for (boolean isLatest : new boolean[] {true, false}) {
      try (ConfigOptions config = new ConfigOptions().setIgnoreUnknownOptions(true)
               .setEnv(Env.getDefault()).setInputStringsEscaped(true).setDelimiter(";")
               .setSanityLevel(SanityLevel.NONE);
          DBOptions options = new DBOptions()) {
        List<ColumnFamilyDescriptor> families = new ArrayList<>();
        if (isLatest) {
          OptionsUtil.loadLatestOptions(config, path("options"), options, families);
        } else {
          String file = new File(path("options"), name).getPath();
          OptionsUtil.loadOptionsFromFile(config, file, options, families);
        }
        say("loaded", options.maxBackgroundJobs(), families.size());
        for (ColumnFamilyDescriptor family : families) {
          ColumnFamilyOptions o = family.getOptions();
          BlockBasedTableConfig t = (BlockBasedTableConfig) o.tableFormatConfig();
          say("family", s(family.getName()), o.writeBufferSize(), o.numLevels(), t.blockSize(),
              t.cacheIndexAndFilterBlocks(), t.checksumType(), t.indexType(),
              t.filterPolicy() == null ? null : t.filterPolicy().getClass().getSimpleName());
          o.close();
        }
      }
    }
    try (ConfigOptions config = new ConfigOptions(); DBOptions options = new DBOptions()) {
      tell("absent", () -> {
        OptionsUtil.loadOptionsFromFile(config, path("no such file"), options, new ArrayList<>());
        return null;
      });
      say("nothing there", code(() -> {
        OptionsUtil.loadLatestOptions(config, path("no such place"), options, new ArrayList<>());
        return null;
      }));
    }
  }

  public static void main(String[] args) throws Exception {
    dir = args[0];
    RocksDB.loadLibrary();
    points();
    iterators();
    families();
    batches();
    snapshots();
    lifetimes();
    tables();
    Tables.run();
    failures();
    options();
    optionsFiles();
    statistics();
    callbacks();
    Transactions.run();
    Backups.run();
    Observers.run();
  }
}
