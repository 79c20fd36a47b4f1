import java.io.File;
import java.util.*;
import org.rocksdb.*;
import org.rocksdb.util.SizeUnit;

/**
 * Hints about performance are taken and told, and what message brokers and workflow engines do when
 * they open and close a store succeeds. The stock library is the oracle.
 */
public class Hints {
  static void say(String what, Object... values) {
    System.out.println(what + ": " + Arrays.deepToString(values));
  }

  static void environment(RocksDB db) throws Exception {
    Env env = db.getEnv();
    for (Priority priority : new Priority[] {Priority.BOTTOM, Priority.LOW, Priority.HIGH}) {
      env.setBackgroundThreads(3, priority);
      env.incBackgroundThreadsIfNeeded(2, priority);
      int kept = env.getBackgroundThreads(priority);
      env.incBackgroundThreadsIfNeeded(5, priority);
      say("threads", priority, kept, env.getBackgroundThreads(priority));
      say("queue", priority, env.getThreadPoolQueueLen(priority));
      env.lowerThreadPoolIOPriority(priority);
      env.lowerThreadPoolCPUPriority(priority);
    }
    env.setBackgroundThreads(16);
    say("low", env.getBackgroundThreads(Priority.LOW));
    for (ThreadStatus status : env.getThreadList()) {
      // Each library has its own.
      status.getThreadType();
    }
  }

  static void options() throws Exception {
    try (Options options = new Options(); LRUCache cache = new LRUCache(1 << 20);
         ConcurrentTaskLimiter tasks = new ConcurrentTaskLimiterImpl("tasks", 3);
         EnvOptions files = new EnvOptions(); RateLimiter limiter = new RateLimiter(1 << 30);
         FlushOptions flush = new FlushOptions(); TimedEnv timed = new TimedEnv(Env.getDefault())) {
      options.setRowCache(cache);
      options.setCompactionThreadLimiter(tasks);
      tasks.setMaxOutstandingTask(5).resetMaxOutstandingTask();
      say("limiter", tasks.name(), tasks.outstandingTask());
      files.setRateLimiter(limiter);
      limiter.request(1000);
      say("two phases", options.setAllow2pc(true).allow2pc());
      say("resume", options.setMaxBgErrorResumeCount(7).maxBgerrorResumeCount());
      say("fifo", options.setMaxTableFilesSizeFIFO(12345).maxTableFilesSizeFIFO());
      options.setDbPaths(Arrays.asList(new DbPath(java.nio.file.Paths.get("/tmp/a"), 10),
          new DbPath(java.nio.file.Paths.get("/tmp/b"), 20)));
      say("paths", options.dbPaths().size());
      options.oldDefaults(4, 6);
      say("old", options.writeBufferSize(), options.maxOpenFiles(), options.delayedWriteRate(),
          options.level0StopWritesTrigger());
    }
    Properties given = new Properties();
    given.setProperty("write_buffer_size", "112233");
    try (ConfigOptions config = new ConfigOptions();
         ColumnFamilyOptions made =
             ColumnFamilyOptions.getColumnFamilyOptionsFromProps(config, given)) {
      say("of text", made.writeBufferSize());
    }
    try (TablePropertiesCollectorFactory factory =
             TablePropertiesCollectorFactory.NewCompactOnDeletionCollectorFactory(10, 5, 0.5);
         Options options = new Options()) {
      options.setTablePropertiesCollectorFactory(Arrays.asList(factory));
      List<TablePropertiesCollectorFactory> all = options.tablePropertiesCollectorFactory();
      say("collectors", all.size());
      all.forEach(TablePropertiesCollectorFactory::close);
    }
    try (CompactionJobStats stats = new CompactionJobStats()) {
      say("times", stats.fileWriteNanos(), stats.fileFsyncNanos(), stats.fileRangeSyncNanos(),
          stats.filePrepareWriteNanos(), stats.smallestOutputKeyPrefix().length);
    }
  }

  /** As a broker's store begins and ends. */
  static void broker(String dir) throws Exception {
    List<ColumnFamilyHandle> handles = new ArrayList<>();
    DBOptions options = new DBOptions().setCreateIfMissing(true)
        .setCreateMissingColumnFamilies(true).setManualWalFlush(true).setMaxBackgroundJobs(2)
        .setMaxSubcompactions(2).setAtomicFlush(true).setStatistics(new Statistics());
    ColumnFamilyOptions family = new ColumnFamilyOptions().setMaxWriteBufferNumber(4)
        .setWriteBufferSize(64 * SizeUnit.MB).setCompactionStyle(CompactionStyle.UNIVERSAL);
    RocksDB db = RocksDB.open(options, dir, Arrays.asList(
        new ColumnFamilyDescriptor("default".getBytes(), family),
        new ColumnFamilyDescriptor("offset".getBytes(), family)), handles);
    try (Env env = db.getEnv()) {
      env.setBackgroundThreads(8, Priority.LOW);
    }
    environment(db);
    try (WriteOptions write = new WriteOptions().setNoSlowdown(false); WriteBatch batch =
             new WriteBatch()) {
      batch.put(handles.get(0), "k".getBytes(), "v".getBytes());
      batch.put(handles.get(1), "k".getBytes(), "w".getBytes());
      db.write(write, batch);
    }
    try (FlushOptions flush = new FlushOptions().setWaitForFlush(true).setAllowWriteStall(false)) {
      db.flush(flush, handles);
    }
    db.suggestCompactRange(handles.get(0));
    say("in use", db.getDBOptions().maxBackgroundJobs(),
        db.getOptions(handles.get(0)).writeBufferSize());
    db.cancelAllBackgroundWork(true);
    db.pauseBackgroundWork();
    db.put(handles.get(0), "late".getBytes(), "v".getBytes());
    db.flushWal(true);
    db.syncWal();
    handles.forEach(ColumnFamilyHandle::close);
    db.closeE();
    say("closed", new File(dir, "CURRENT").exists());
  }

  /** A copy of a copy that is only read, as a workflow engine keeps its snapshots. */
  static void snapshots(String dir) throws Exception {
    try (Options options = new Options().setCreateIfMissing(true);
         RocksDB db = RocksDB.open(options, dir)) {
      db.put("a".getBytes(), "1".getBytes());
      try (Checkpoint checkpoint = Checkpoint.create(db)) {
        checkpoint.createCheckpoint(dir + "-1");
      }
      try (RocksDB reader = RocksDB.openReadOnly(options, dir + "-1");
           Checkpoint checkpoint = Checkpoint.create(reader)) {
        checkpoint.createCheckpoint(dir + "-2");
      }
      try (RocksDB copy = RocksDB.open(options, dir + "-2")) {
        say("snapshot", new String(copy.get("a".getBytes())));
      }
    }
  }

  public static void main(String[] args) throws Exception {
    RocksDB.loadLibrary();
    options();
    broker(new File(args[0], "broker").getPath());
    snapshots(new File(args[0], "snapshots").getPath());
  }
}
