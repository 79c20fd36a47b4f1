import java.io.File;
import java.nio.file.Files;
import java.util.*;
import org.rocksdb.*;
import org.rocksdb.util.StdErrLogger;

/**
 * Filters of the log and of tables, the logger to standard error, the files that a manager tracks,
 * numbers of logs. The stock library is the oracle.
 */
public class Hooks {
  static final byte[] VALUE = new byte[1024];

  static void say(String what, Object... values) {
    System.out.println(what + ": " + Arrays.deepToString(values));
  }

  static byte[] b(String s) {
    return s.getBytes();
  }

  /** Decides about the second record, and remembers what it was shown. */
  static class Filter extends AbstractWalFilter {
    final WalProcessingOption second;
    final boolean changes;
    final List<String> seen = new ArrayList<>();
    Map<Integer, Long> logs;
    Map<String, Integer> numbers;
    WriteBatch kept;

    Filter(WalProcessingOption second, boolean changes) {
      this.second = second;
      this.changes = changes;
    }

    @Override
    public String name() {
      return "second record";
    }

    @Override
    public void columnFamilyLogNumberMap(Map<Integer, Long> logs, Map<String, Integer> numbers) {
      this.logs = logs;
      this.numbers = numbers;
    }

    @Override
    public LogRecordFoundResult logRecordFound(
        long number, String file, WriteBatch batch, WriteBatch other) {
      boolean isSame = new File(file).getName().equals(String.format("%06d.log", number));
      seen.add(batch.count() + " " + other.count() + " " + isSame);
      kept = batch;
      boolean isSecond = seen.size() == 2;
      if (isSecond && second == null) {
        throw new IllegalStateException("on purpose");
      }
      try {
        if (isSecond && changes) {
          other.put(b("other"), b("batch"));
        }
      } catch (RocksDBException e) {
        throw new AssertionError(e);
      }
      return new LogRecordFoundResult(
          isSecond ? second : WalProcessingOption.CONTINUE_PROCESSING, isSecond && changes);
    }
  }

  static List<ColumnFamilyDescriptor> families() {
    return Arrays.asList(new ColumnFamilyDescriptor(b("default")),
        new ColumnFamilyDescriptor(b("pikachu")));
  }

  static String keys(RocksDB db, List<ColumnFamilyHandle> handles) {
    StringBuilder keys = new StringBuilder();
    for (ColumnFamilyHandle handle : handles) {
      try (RocksIterator i = db.newIterator(handle)) {
        for (i.seekToFirst(); i.isValid(); i.next()) {
          keys.append(new String(i.key())).append(' ');
        }
      }
    }
    return keys.toString();
  }

  static void log(String dir, WalProcessingOption second, boolean changes) throws Exception {
    List<ColumnFamilyHandle> handles = new ArrayList<>();
    try (DBOptions options = new DBOptions().setCreateIfMissing(true)
             .setCreateMissingColumnFamilies(true);
         RocksDB db = RocksDB.open(options, dir, families(), handles);
         WriteOptions write = new WriteOptions()) {
      for (int i = 0; i < 6; i += 2) {
        try (WriteBatch batch = new WriteBatch()) {
          batch.put(handles.get(0), b("key" + i), VALUE);
          batch.put(handles.get(1), b("key" + (i + 1)), VALUE);
          db.write(write, batch);
        }
      }
      handles.forEach(ColumnFamilyHandle::close);
    }
    handles.clear();
    try (Filter filter = new Filter(second, changes);
         DBOptions options = new DBOptions().setWalFilter(filter)
             .setWalRecoveryMode(WALRecoveryMode.AbsoluteConsistency)) {
      say("is told", options.walFilter() == filter);
      String what = second + " " + changes;
      try (RocksDB db = RocksDB.open(options, dir, families(), handles)) {
        say(what, keys(db, handles));
        handles.forEach(ColumnFamilyHandle::close);
      } catch (RocksDBException e) {
        say(what, e.getStatus().getCode());
      }
      say("seen", filter.seen, filter.logs.keySet(), new TreeMap<>(filter.numbers));
    }
  }

  /** Options of one object take a filter as well. */
  static void single(String dir) throws Exception {
    try (Options options = new Options().setCreateIfMissing(true)) {
      try (RocksDB db = RocksDB.open(options, dir)) {
        db.put(b("a"), VALUE);
        db.put(b("b"), VALUE);
      }
      try (Filter filter = new Filter(WalProcessingOption.IGNORE_CURRENT_RECORD, false)) {
        options.setWalFilter(filter);
        try (RocksDB db = RocksDB.open(options, dir)) {
          say("single", db.get(b("a")) != null, db.get(b("b")) != null);
        }
      }
    }
  }

  static void tables(String dir) throws Exception {
    Set<String> asked = new TreeSet<>();
    try (Options options = new Options().setCreateIfMissing(true).setDisableAutoCompactions(true);
         RocksDB db = RocksDB.open(options, dir);
         FlushOptions flush = new FlushOptions().setWaitForFlush(true);
         AbstractTableFilter large = new AbstractTableFilter() {
           @Override
           public boolean filter(TableProperties properties) {
             asked.add(new String(properties.getColumnFamilyName()));
             if (properties.getNumEntries() == 3) {
               throw new IllegalStateException("on purpose");
             }
             return properties.getNumEntries() > 1;
           }
         };
         ReadOptions read = new ReadOptions().setTableFilter(large)) {
      for (int entries = 1; entries <= 3; entries++) {
        for (int i = 0; i < entries; i++) {
          db.put(b("table " + entries + " key " + i), VALUE);
        }
        db.flush(flush);
      }
      List<String> seen = new ArrayList<>();
      try (ReadOptions copy = new ReadOptions(read); RocksIterator i = db.newIterator(copy)) {
        for (i.seekToFirst(); i.isValid(); i.next()) {
          seen.add(new String(i.key()));
        }
      }
      say("tables", seen, asked, db.get(read, b("table 1 key 0")) != null);
    }
  }

  /** The child of {@link #stderr}. */
  static void write(String dir, String level) throws Exception {
    try (StdErrLogger logger = new StdErrLogger(InfoLogLevel.HEADER_LEVEL, "[the prefix]");
         Options options = new Options().setCreateIfMissing(true).setLogger(logger)) {
      logger.setInfoLogLevel(InfoLogLevel.valueOf(level));
      try (RocksDB db = RocksDB.open(options, dir)) {
        db.put(b("k"), b("v"));
      }
    }
  }

  static void stderr(String dir, InfoLogLevel level) throws Exception {
    File lines = new File(dir + ".stderr");
    ProcessBuilder child = new ProcessBuilder(
        new File(System.getProperty("java.home"), "bin/java").getPath(),
        "-Djava.library.path=" + System.getProperty("java.library.path"), "-cp",
        System.getProperty("java.class.path"), "Hooks", dir, level.toString());
    int code = child.redirectError(lines).start().waitFor();
    long count = Files.readAllLines(lines.toPath()).stream()
        .filter(line -> line.contains("[the prefix]")).count();
    say("standard error", level, code, count > 10, new File(dir, "LOG").exists());
  }

  static void loggers() throws Exception {
    try (StdErrLogger plain = new StdErrLogger(InfoLogLevel.WARN_LEVEL);
         StdErrLogger prefixed = new StdErrLogger(InfoLogLevel.DEBUG_LEVEL, "x");
         DBOptions options = new DBOptions().setLogger(plain)) {
      say("level", plain.infoLogLevel(), prefixed.infoLogLevel(), plain.getLoggerType());
      plain.setInfoLogLevel(InfoLogLevel.ERROR_LEVEL);
      say("level", plain.infoLogLevel(), options.infoLogLevel());
    }
  }

  static Map<String, Long> tables(File dir) {
    Map<String, Long> tables = new HashMap<>();
    for (File file : dir.listFiles((in, name) -> name.matches(".*[.](sst|blob)"))) {
      tables.put(file.getPath(), file.length());
    }
    return tables;
  }

  /** The tracked files are tables and blob files, with their sizes, once obsolete ones are gone. */
  static void compare(SstFileManager manager, File dir) throws Exception {
    for (int i = 0; i < 1000 && !manager.getTrackedFiles().equals(tables(dir)); i++) {
      Thread.sleep(10);
    }
    Map<String, Long> tracked = manager.getTrackedFiles();
    say("tracked", tracked.size(), tracked.equals(tables(dir)));
  }

  static void tracked(File dir) throws Exception {
    try (SstFileManager manager = new SstFileManager(Env.getDefault());
         Options options = new Options().setCreateIfMissing(true).setSstFileManager(manager)
             .setDisableAutoCompactions(true);
         FlushOptions flush = new FlushOptions().setWaitForFlush(true)) {
      say("none", manager.getTrackedFiles());
      try (RocksDB db = RocksDB.open(options, dir.getPath())) {
        compare(manager, dir);
        for (int i = 0; i < 3; i++) {
          db.put(b("a"), VALUE);
          db.put(b("z"), VALUE);
          db.flush(flush);
        }
        compare(manager, dir);
        db.compactRange();
        compare(manager, dir);
      }
    }
    try (SstFileManager manager = new SstFileManager(Env.getDefault());
         Options options = new Options().setSstFileManager(manager);
         TransactionDBOptions how = new TransactionDBOptions();
         RocksDB db = TransactionDB.open(options, how, dir.getPath())) {
      compare(manager, dir);
    }
  }

  /** Blob files are written by the stock library alone: ours opens the directory that it wrote. */
  static void blobs(File dir) throws Exception {
    if (!dir.exists()) {
      try (Options options = new Options().setCreateIfMissing(true).setEnableBlobFiles(true);
           RocksDB db = RocksDB.open(options, dir.getPath());
           FlushOptions flush = new FlushOptions().setWaitForFlush(true)) {
        db.put(b("k"), VALUE);
        db.flush(flush);
      }
    }
    try (SstFileManager manager = new SstFileManager(Env.getDefault());
         Options options = new Options().setSstFileManager(manager);
         RocksDB db = RocksDB.open(options, dir.getPath())) {
      compare(manager, dir);
    }
  }

  /** Databases, backups and options files in memory leave nothing on disk. */
  static void memory(String dir) throws Exception {
    // The class wants a directory, whatever the environment is.
    File copies = Files.createDirectory(new File(dir + "-backup").toPath()).toFile();
    try (Env memory = new RocksMemEnv(Env.getDefault()); Env other = new RocksMemEnv(memory);
         Options options = new Options().setCreateIfMissing(true).setEnv(memory);
         FlushOptions flush = new FlushOptions().setWaitForFlush(true);
         BackupEngineOptions backup = new BackupEngineOptions(copies.getPath());
         ConfigOptions config = new ConfigOptions()) {
      for (int round = 0; round < 3; round++) {
        try (RocksDB db = RocksDB.open(options, dir)) {
          say("in memory", keys(db, Arrays.asList(db.getDefaultColumnFamily())));
          db.put(b("key" + round), VALUE);
          if (round == 1) {
            db.flush(flush);
          }
          say("properties", db.getPropertiesOfAllTables().size(), db.getEnv() != null);
          try (BackupEngine backups = BackupEngine.open(memory, backup)) {
            backups.createNewBackup(db, true);
            say("backups", backups.getBackupInfo().size());
          }
        }
      }
      say("families", RocksDB.listColumnFamilies(options, dir).size());
      config.setEnv(memory);
      List<ColumnFamilyDescriptor> families = new ArrayList<>();
      try (DBOptions read = new DBOptions()) {
        OptionsUtil.loadLatestOptions(config, dir, read, families);
        say("options", families.size(), OptionsUtil.getLatestOptionsFileName(dir, memory)
            .startsWith("OPTIONS-"));
      }
      options.setCreateIfMissing(false).setEnv(other);
      try (RocksDB db = RocksDB.open(options, dir)) {
        say("elsewhere", true);
      } catch (RocksDBException e) {
        say("elsewhere", e.getStatus().getCode());
      }
    }
    say("on disk", new File(dir).exists(), copies.list().length);
  }

  static void clip(String dir) throws Exception {
    List<ColumnFamilyHandle> handles = new ArrayList<>();
    try (DBOptions options = new DBOptions().setCreateIfMissing(true)
             .setCreateMissingColumnFamilies(true);
         RocksDB db = RocksDB.open(options, dir, families(), handles);
         FlushOptions flush = new FlushOptions().setWaitForFlush(true)) {
      ColumnFamilyHandle family = handles.get(1);
      db.put(b("key0"), VALUE);
      for (int i = 0; i < 10; i++) {
        db.put(family, b("key" + i), VALUE);
        if (i % 3 == 2) {
          db.flush(flush, family);
        }
      }
      for (String[] range : new String[][] {
               {"key0", "kez"}, {"key2", "key8"}, {"key3", "key7"}, {"key31", "key55"},
               {"key5", "key5"}, {"a", "z"}}) {
        db.clipColumnFamily(family, b(range[0]), b(range[1]));
        say("clipped", range, keys(db, handles));
      }
      handles.forEach(ColumnFamilyHandle::close);
    }
  }

  static String compact(RocksDB db, CompactRangeOptions options) {
    try {
      db.compactRange(db.getDefaultColumnFamily(), null, null, options);
      return "done";
    } catch (RocksDBException e) {
      return e.getStatus().getCode() + " " + e.getStatus().getSubCode();
    }
  }

  /** A compaction that would take a minute is given up at once. */
  static void canceled(String dir) throws Exception {
    byte[] value = new byte[1000];
    new Random(1).nextBytes(value);
    try (Options options = new Options().setCreateIfMissing(true).setDisableAutoCompactions(true);
         FlushOptions flush = new FlushOptions().setWaitForFlush(true);
         CompactRangeOptions how = new CompactRangeOptions()) {
      try (RocksDB db = RocksDB.open(options, dir)) {
        for (int i = 0; i < 30_000; i++) {
          db.put(b("key" + i % 15_000), value);
          if (i % 15_000 == 14_999) {
            db.flush(flush);
          }
        }
        how.setCanceled(true);
        say("before", how.canceled(), compact(db, how));
        how.setCanceled(false);
      }
      try (RateLimiter slow = new RateLimiter(400_000)) {
        options.setRateLimiter(slow);
        try (RocksDB db = RocksDB.open(options, dir)) {
          Thread other = new Thread(() -> {
            try {
              Thread.sleep(500);
            } catch (InterruptedException e) {
              throw new AssertionError(e);
            }
            how.setCanceled(true);
          });
          other.start();
          long begun = System.nanoTime();
          String end = compact(db, how);
          boolean isSoon = System.nanoTime() - begun < 30_000_000_000L;
          other.join();
          say("meanwhile", end, isSoon, db.get(b("key7")).length);
        }
      }
    }
  }

  static void numbers(String dir) throws Exception {
    try (CompactRangeOptions options = new CompactRangeOptions()) {
      say("no timestamp", options.fullHistoryTSLow());
      CompactRangeOptions.Timestamp low = new CompactRangeOptions.Timestamp(17, 1L << 40);
      options.setFullHistoryTSLow(low);
      say("timestamp", options.fullHistoryTSLow().equals(low));
    }
    try (Options options = new Options().setCreateIfMissing(true);
         TransactionDBOptions how = new TransactionDBOptions();
         TransactionDB db = TransactionDB.open(options, how, dir);
         WriteOptions write = new WriteOptions(); Transaction txn = db.beginTransaction(write)) {
      say("log number", txn.getLogNumber());
      txn.setLogNumber(Long.MIN_VALUE + 5);
      say("log number", txn.getLogNumber());
      txn.put(b("k"), b("v"));
      txn.commit();
      say("begun anew", db.beginTransaction(write, txn).getLogNumber(), db.get(b("k")).length);
    }
  }

  public static void main(String[] args) throws Exception {
    RocksDB.loadLibrary();
    if (args.length > 1) {
      write(args[0], args[1]);
      return;
    }
    String dir = new File(args[0]).getCanonicalPath() + "/";
    for (WalProcessingOption second : WalProcessingOption.values()) {
      log(dir + second, second, false);
    }
    log(dir + "changed", WalProcessingOption.CONTINUE_PROCESSING, true);
    log(dir + "throws", null, false);
    single(dir + "single");
    tables(dir + "tables");
    loggers();
    stderr(dir + "info", InfoLogLevel.INFO_LEVEL);
    stderr(dir + "fatal", InfoLogLevel.FATAL_LEVEL);
    tracked(new File(dir, "tracked"));
    blobs(new File(dir, "blobs"));
    memory(dir + "memory");
    clip(dir + "clip");
    canceled(dir + "canceled");
    numbers(dir + "numbers");
  }
}
