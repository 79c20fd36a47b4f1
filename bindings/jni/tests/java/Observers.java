import java.util.*;
import java.util.concurrent.*;
import org.rocksdb.*;

/** Listeners, the perf context, table properties, records of batches. See {@link Groups}. */
class Observers {
  static byte[] b(String s) { return Groups.b(s); }

  static String s(byte[] bytes) { return Groups.s(bytes); }

  static void run() throws Exception {
    listeners();
    figures();
    records();
    slices();
    contents();
    several();
  }

  static void listeners() throws Exception {
    Set<String> told = new ConcurrentSkipListSet<>();
    List<String> flushed = new CopyOnWriteArrayList<>();
    List<String> compacted = new CopyOnWriteArrayList<>();
    try (AbstractEventListener listener = new AbstractEventListener() {
      @Override
      public void onFlushBegin(RocksDB db, FlushJobInfo info) { told.add("flush begin"); }

      @Override
      public void onFlushCompleted(RocksDB db, FlushJobInfo info) {
        told.add("flush completed");
        flushed.add(info.getColumnFamilyName() + " " + info.getFlushReason() + " "
            + info.getTableProperties().getNumEntries() + " " + (db.getLatestSequenceNumber() > 0)
                + " "
            + info.getFilePath().endsWith(".sst") + " " + info.isTriggeredWritesStop());
      }

      @Override
      public void onCompactionCompleted(RocksDB db, CompactionJobInfo info) {
        told.add("compaction completed");
        compacted.add(s(info.columnFamilyName()) + " " + info.compactionReason() + " "
            + info.status().getCode() + " "
            + info.inputFiles().size() + " " + info.outputFiles().size() + " "
                + info.baseInputLevel() + " "
            + info.stats().numInputRecords() + " " + info.stats().numOutputRecords() + " "
            + (info.tableProperties().size() > 0));
      }

      @Override
      public void onTableFileCreated(TableFileCreationInfo info) {
        told.add("created " + info.getReason() + " " + info.getStatus().getCode());
      }

      @Override
      public void onTableFileDeleted(TableFileDeletionInfo info) {
        told.add("deleted " + info.getStatus().getCode());
      }

      @Override
      public void onMemTableSealed(MemTableInfo info) {
        told.add("sealed " + info.getColumnFamilyName() + " " + info.getNumEntries() + " "
            + info.getNumDeletes());
      }

      @Override
      public void onExternalFileIngested(RocksDB db, ExternalFileIngestionInfo info) {
        told.add("ingested " + info.getColumnFamilyName() + " "
            + info.getTableProperties().getNumEntries());
      }
    };
        Options options = new Options().setCreateIfMissing(true).setDisableAutoCompactions(true)) {
      options.setListeners(Collections.singletonList(listener));
      Groups.say("listeners", options.listeners().size(), options.listeners().get(0) == listener);
      try (EnvOptions files = new EnvOptions(); SstFileWriter writer = new SstFileWriter(files,
          options)) {
        writer.open(Groups.path("listened.sst"));
        writer.put(b("x"), b("y"));
        writer.finish();
      }
      try (RocksDB db = RocksDB.open(options, Groups.path("listened"));
          FlushOptions flush = new FlushOptions().setWaitForFlush(true)) {
        for (int round = 0; round < 2; round++) {
          db.put(b("a"), b("1"));
          db.put(b("b"), b("2"));
          db.delete(b("c"));
          db.flush(flush);
        }
        db.compactRange();
        try (IngestExternalFileOptions ingest = new IngestExternalFileOptions()) {
          db.ingestExternalFile(Collections.singletonList(Groups.path("listened.sst")), ingest);
        }
        Map<String, TableProperties> all = db.getPropertiesOfAllTables();
        long entries = 0;
        for (TableProperties p : all.values()) {
          entries += p.getNumEntries();
        }
        Groups.say("properties", all.size(), entries);
      }
      told.removeIf(what -> what.startsWith("deleted"));
      Groups.say("told", told);
      Groups.say("flushes", flushed);
      Groups.say("compactions", compacted);
    }
  }

  static void figures() throws Exception {
    try (Options options = new Options().setCreateIfMissing(true);
        RocksDB db = RocksDB.open(options, Groups.path("figures"))) {
      db.setPerfLevel(PerfLevel.ENABLE_COUNT);
      Groups.say("perf level", db.getPerfLevel());
      db.setPerfLevel(PerfLevel.ENABLE_TIME);
      PerfContext context = db.getPerfContext();
      context.reset();
      db.put(b("k"), b("v"));
      db.get(b("k"));
      Groups.say("perf", context.getWriteMemtableTime() > 0, context.getBlobReadCount());
      context.reset();
      Groups.say("perf reset", context.getWriteMemtableTime(), context.toString(true).isEmpty());
      db.setPerfLevel(PerfLevel.DISABLE);
    }
  }

  static String record(WBWIRocksIterator it) {
    WBWIRocksIterator.WriteEntry entry = it.entry();
    return entry.getType() + " " + entry.getKey().toString() + " "
        + (entry.getValue() == null || entry.getType() == WBWIRocksIterator.WriteType.DELETE ? "-"
            : entry.getValue().toString());
  }

  static void records() throws Exception {
    try (WriteBatchWithIndex batch = new WriteBatchWithIndex(true)) {
      batch.put(b("k1"), b("v1"));
      batch.put(b("k3"), b("v3"));
      batch.delete(b("k2"));
      batch.merge(b("k4"), b("m"));
      List<String> all = new ArrayList<>();
      try (WBWIRocksIterator it = batch.newIterator()) {
        for (it.seekToFirst(); it.isValid(); it.next()) {
          all.add(record(it));
        }
        it.status();
        Groups.say("records", all);
        it.seek(b("k2x"));
        Groups.say("record", record(it));
        it.seekForPrev(b("k2x"));
        Groups.say("record before", record(it));
        it.seekToLast();
        it.prev();
        Groups.say("record back", record(it));
      }
      Groups.say("plain of it", batch.getWriteBatch().count());
    }
  }

  static void slices() throws Exception {
    java.nio.ByteBuffer buffer = java.nio.ByteBuffer.allocateDirect(10);
    buffer.put(b("0123456789")).flip();
    try (DirectSlice slice = new DirectSlice(buffer, 8); Slice plain = new Slice("abcdef")) {
      Groups.say("direct slice", slice.size(), slice.get(2), slice.empty(), slice.toString());
      slice.removePrefix(2);
      slice.setLength(4);
      byte[] shown = new byte[slice.size()];
      slice.data().get(shown);
      Groups.say("cut", slice.size(), slice.toString(), s(shown));
      plain.removePrefix(2);
      Groups.say("plain slice", plain.toString(), plain.size(), s(plain.data()));
      plain.clear();
      Groups.say("cleared", plain.size(), plain.empty());
    }
  }

  /** The parts of a database, and its writes. */
  static void contents() throws Exception {
    try (Options options = new Options().setCreateIfMissing(true);
        LRUCache cache = new LRUCache(1 << 20);
        RocksDB db = RocksDB.open(options, Groups.path("contents"));
        FlushOptions flush = new FlushOptions().setWaitForFlush(true)) {
      for (int i = 0; i < 100; i++) {
        db.put(b("k" + i), new byte[100]);
      }
      StringBuilder written = new StringBuilder();
      try (TransactionLogIterator log = db.getUpdatesSince(98)) {
        for (; log.isValid(); log.next()) {
          TransactionLogIterator.BatchResult batch = log.getBatch();
          written.append(batch.sequenceNumber()).append(' ');
          written.append(batch.writeBatch().count()).append("; ");
          batch.writeBatch().close();
        }
        log.status();
      }
      Groups.say("written", written);
      Groups.tell("not written yet", () -> db.getUpdatesSince(1000));
      Groups.say("logs", db.getSortedWalFiles().size(), db.getSortedWalFiles().get(0).type());
      db.flush(flush);
      ColumnFamilyMetaData meta = db.getColumnFamilyMetaData();
      LevelMetaData level = meta.levels().get(0);
      SstFileMetaData file = level.files().get(0);
      Groups.say("family", s(meta.name()), meta.fileCount(), meta.levels().size(), level.level(),
          s(file.smallestKey()), s(file.largestKey()), file.numEntries(), meta.size() > 0);
      try (Slice from = new Slice("k"); Slice to = new Slice("l")) {
        Range range = new Range(from, to);
        long[] sizes = db.getApproximateSizes(Collections.singletonList(range),
            SizeApproximationFlag.INCLUDE_FILES);
        Groups.say("sizes", sizes.length, sizes[0] > 0);
        // getPropertiesOfTablesInRange of the stock library answers with an array.
      }
      RocksDB.LiveFiles live = db.getLiveFiles();
      Set<String> kinds = new TreeSet<>();
      for (String name : live.files) {
        kinds.add(name.replaceAll("[0-9]+", "N"));
      }
      Groups.say("live files", kinds, live.manifestFileSize > 0);
      Map<MemoryUsageType, Long> used = MemoryUtil.getApproximateMemoryUsageByType(
          Collections.singletonList(db), Collections.singleton(cache));
      Groups.say("memory", new TreeSet<>(used.keySet()),
          used.get(MemoryUsageType.kMemTableTotal) > 0);
      Groups.say("world", db.getEnv() != null);
    }
  }

  static java.nio.ByteBuffer direct(String s) {
    java.nio.ByteBuffer buffer = java.nio.ByteBuffer.allocateDirect(16);
    buffer.put(b(s)).flip();
    return buffer;
  }

  /** Reads of several keys into buffers. */
  static void several() throws Exception {
    try (Options options = new Options().setCreateIfMissing(true);
        RocksDB db = RocksDB.open(options, Groups.path("several"))) {
      db.put(b("one"), b("1"));
      db.put(b("long"), b("0123456789"));
      List<java.nio.ByteBuffer> keys = Arrays.asList(direct("one"), direct("none"), direct("long"));
      List<java.nio.ByteBuffer> values = new ArrayList<>();
      for (int i = 0; i < keys.size(); i++) {
        values.add(java.nio.ByteBuffer.allocateDirect(4));
      }
      for (ByteBufferGetStatus status : db.multiGetByteBuffers(keys, values)) {
        byte[] shown = new byte[status.value == null ? 0 : status.value.remaining()];
        if (status.value != null) {
          status.value.get(shown);
        }
        Groups.say("several", status.status.getCode(), status.requiredSize, s(shown));
      }
      java.nio.ByteBuffer to = java.nio.ByteBuffer.allocateDirect(4);
      KeyMayExist may = db.keyMayExist(direct("long"), to);
      Groups.say("may exist", may.exists, may.valueLength, to.remaining());
      Groups.say("may not", db.keyMayExist(direct("none"), to).exists);
    }
  }
}
