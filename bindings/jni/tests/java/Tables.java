import java.nio.ByteBuffer;
import java.util.*;
import org.rocksdb.*;

/** Table files outside of a database, and how files are written. See {@link Groups}. */
class Tables {
  static byte[] b(String s) { return Groups.b(s); }

  static String s(byte[] bytes) { return Groups.s(bytes); }

  static void run() throws Exception {
    written();
    readers();
    levels();
  }

  static String all(EnvOptions o) {
    return o.useMmapReads() + " " + o.useMmapWrites() + " " + o.useDirectReads() + " "
        + o.useDirectWrites() + " " + o.allowFallocate() + " " + o.setFdCloexec() + " "
        + o.bytesPerSync() + " " + o.fallocateWithKeepSize() + " " + o.compactionReadaheadSize()
        + " " + o.writableFileMaxBufferSize();
  }

  static void written() throws Exception {
    try (EnvOptions plain = new EnvOptions();
        DBOptions db = new DBOptions().setBytesPerSync(4096).setWritableFileMaxBufferSize(65536)
            .setUseDirectReads(true).setCompactionReadaheadSize(8192);
        EnvOptions of = new EnvOptions(db);
        EnvOptions own = new EnvOptions()) {
      Groups.say("env options", all(plain));
      Groups.say("of a database", all(of));
      own.setUseMmapReads(true).setUseMmapWrites(true).setUseDirectReads(true)
          .setAllowFallocate(false).setSetFdCloexec(false).setBytesPerSync(1 << 20)
          .setFallocateWithKeepSize(false).setCompactionReadaheadSize(7)
          .setWritableFileMaxBufferSize(1 << 17);
      Groups.say("changed", all(own));
      own.setUseDirectWrites(true);
      Groups.say("direct", own.useDirectWrites());
      own.setUseMmapReads(false).setUseMmapWrites(false);
      try (Options options = new Options();
          SstFileWriter writer = new SstFileWriter(own, options)) {
        writer.open(Groups.path("direct.sst"));
        for (int i = 1000; i < 3000; i++) {
          writer.put(b("key" + i), new byte[200]);
        }
        writer.finish();
        try (SstFileReader reader = new SstFileReader(options)) {
          reader.open(Groups.path("direct.sst"));
          reader.verifyChecksum();
          Groups.say("written directly", reader.getTableProperties().getNumEntries());
        }
      }
    }
  }

  static void readers() throws Exception {
    try (StringAppendOperator append = new StringAppendOperator();
        Options options = new Options().setCreateIfMissing(true).setMergeOperator(append);
        EnvOptions files = new EnvOptions();
        SstFileWriter writer = new SstFileWriter(files, options);
        ReadOptions read = new ReadOptions()) {
      writer.open(Groups.path("read.sst"));
      writer.put(b("k1"), b("v1"));
      writer.delete(b("k2"));
      writer.merge(b("k3"), b("m3"));
      writer.put(b("k5"), b("v5"));
      writer.finish();
      try (SstFileReader reader = new SstFileReader(options)) {
        Groups.tell("no file", () -> {
          reader.open(Groups.path("none.sst"));
          return null;
        });
        reader.open(Groups.path("read.sst"));
        reader.verifyChecksum();
        TableProperties said = reader.getTableProperties();
        Groups.say("properties", said.getNumEntries(), said.getNumDeletions(),
            s(said.getColumnFamilyName()).length(), said.getComparatorName());
        SstFileReaderIterator it = reader.newIterator(read);
        walk(it);
        it.close();
      }
      try (Slice upper = new Slice("k3");
          ReadOptions bounded = new ReadOptions().setIterateUpperBound(upper);
          SstFileReader reader = new SstFileReader(options)) {
        reader.open(Groups.path("read.sst"));
        try (SstFileReaderIterator it = reader.newIterator(bounded)) {
          it.seekToLast();
          Groups.say("bounded", s(it.key()));
        }
      }
    }
  }

  static void walk(SstFileReaderIterator it) throws Exception {
    StringBuilder forward = new StringBuilder();
    for (it.seekToFirst(); it.isValid(); it.next()) {
      forward.append(s(it.key())).append('=').append(s(it.value())).append(' ');
    }
    it.status();
    StringBuilder back = new StringBuilder();
    for (it.seekToLast(); it.isValid(); it.prev()) {
      back.append(s(it.key())).append(' ');
    }
    Groups.say("walked", forward, back);
    it.seek(b("k2"));
    Groups.say("seek", s(it.key()));
    it.seekForPrev(b("k4"));
    Groups.say("seek for prev", s(it.key()));
    ByteBuffer target = ByteBuffer.allocateDirect(2);
    target.put(b("k4")).flip();
    it.seek(target);
    ByteBuffer key = ByteBuffer.allocateDirect(8);
    ByteBuffer value = ByteBuffer.allocate(8);
    Groups.say("by buffers", it.key(key), it.value(value), (char) key.get(1));
    target.clear();
    target.put(b("k2")).flip();
    it.seekForPrev(target);
    Groups.say("seek for prev by a buffer", s(it.key()));
  }

  static void levels() throws Exception {
    try (Options options = new Options().setCreateIfMissing(true).setNumLevels(5)
        .setLevel0StopWritesTrigger(44);
        RocksDB db = RocksDB.open(options, Groups.path("levels"))) {
      Groups.say("levels", db.numberLevels(), db.maxMemCompactionLevel(),
          db.level0StopWriteTrigger());
      Groups.say("levels of a family", db.numberLevels(db.getDefaultColumnFamily()));
    }
  }
}
