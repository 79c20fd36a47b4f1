import java.io.File;
import java.lang.reflect.*;
import java.util.*;
import org.rocksdb.*;

/**
 * Calls that no program should make: handles that are closed, forged, of another kind or after
 * their database, and arguments that are null. Each must come to an exception or an answer, never
 * to a crash.
 */
public class Hostile {
  static int calls;
  static int thrown;
  static final Map<String, Integer> kinds = new TreeMap<>();

  static void call(Method method, Object receiver, Object[] arguments) {
    calls++;
    try {
      method.invoke(receiver, arguments);
    } catch (InvocationTargetException e) {
      thrown++;
      kinds.merge(e.getCause().getClass().getSimpleName(), 1, Integer::sum);
    } catch (ReflectiveOperationException | IllegalArgumentException e) {
      throw new AssertionError(method.toString(), e);
    }
  }

  static long[] handles(String dir) throws Exception {
    Options options = new Options().setCreateIfMissing(true);
    RocksDB db = RocksDB.open(options, dir);
    RocksIterator it = db.newIterator();
    it.seekToFirst();
    Snapshot snapshot = db.getSnapshot();
    WriteBatch batch = new WriteBatch();
    long[] all = {db.getNativeHandle(), it.getNativeHandle(), snapshot.getNativeHandle(),
        batch.getNativeHandle(), options.getNativeHandle()};
    batch.close();
    db.close();
    options.close();
    return all;
  }

  /** Which log has a transaction prepared is not known here, and no other number is said. */
  static void prepared(String dir) throws RocksDBException {
    try (Options options = new Options().setCreateIfMissing(true);
         TransactionDBOptions how = new TransactionDBOptions();
         TransactionDB db = TransactionDB.open(options, how, dir);
         WriteOptions write = new WriteOptions(); Transaction txn = db.beginTransaction(write)) {
      txn.setName("prepared");
      txn.put("k".getBytes(), "v".getBytes());
      txn.prepare();
      Status.Code code = null;
      try {
        txn.getLogNumber();
      } catch (Exception e) {
        code = ((RocksDBException) e).getStatus().getCode();
      }
      if (code != Status.Code.NotSupported) {
        throw new AssertionError("the number of a log: " + code);
      }
      txn.commit();
    }
  }

  public static void main(String[] args) throws Exception {
    RocksDB.loadLibrary();
    List<Long> bad = new ArrayList<>(
        Arrays.asList(0L, 1L, -1L, 0xdeadbeefL, Long.MAX_VALUE, Long.MIN_VALUE));
    for (long handle : handles(new File(args[0], "hostile").getPath())) {
      bad.add(handle);
    }
    // Handles that are open, but of another kind than most methods want.
    LRUCache cache = new LRUCache(1 << 20);
    ReadOptions read = new ReadOptions();
    String[] classes = {"RocksDB", "RocksIterator", "WriteBatch", "WriteBatchWithIndex",
        "ReadOptions",
        "WriteOptions", "FlushOptions", "Options", "DBOptions", "ColumnFamilyOptions", "Cache",
        "LRUCache", "Statistics", "Checkpoint", "ColumnFamilyHandle", "Snapshot", "AbstractSlice",
        "Slice", "BloomFilter", "Filter", "Transaction", "TransactionDB", "OptimisticTransactionDB",
        "BackupEngine", "SstFileWriter", "SstFileReader", "EnvOptions", "CompactRangeOptions",
        "IngestExternalFileOptions", "TransactionOptions", "PerfContext", "TransactionDBOptions",
        "OptimisticTransactionOptions", "BackupEngineOptions", "RestoreOptions",
        "WBWIRocksIterator", "TransactionLogIterator", "CompactionJobInfo", "CompactionJobStats",
        "DirectSlice", "MemoryUtil", "AbstractTransactionNotifier", "OptionsUtil", "ConfigOptions",
        "ExportImportFilesMetaData", "SstFileManager", "util.StdErrLogger"};
    for (String name : classes) {
      Class<?> type = Class.forName("org.rocksdb." + name);
      for (Method method : type.getDeclaredMethods()) {
        int kind = method.getModifiers();
        boolean takesHandle =
            method.getParameterCount() > 0 && method.getParameterTypes()[0] == long.class;
        if (!Modifier.isNative(kind) || !Modifier.isStatic(kind) || !takesHandle) {
          continue;
        }
        method.setAccessible(true);
        for (long handle : bad) {
          for (boolean zero : new boolean[] {false, true}) {
            Object[] arguments = new Object[method.getParameterCount()];
            for (int i = 0; i < arguments.length; i++) {
              Class<?> t = method.getParameterTypes()[i];
              arguments[i] = t == long.class ? (Object) (i == 0 ? handle : zero ? 0L : handle)
                  : t == int.class ? (Object) (zero ? 0 : -1)
                  : t == boolean.class ? (Object) zero
                  : t == byte.class ? (Object) (byte) (zero ? 0 : 99)
                  : t == char.class ? (Object) 'x'
                  : t == double.class ? (Object) (zero ? 0.0 : Double.NaN)
                  : t == float.class ? (Object) 0f
                  : t == short.class ? (Object) (short) 0
                  : t == byte[].class ? (zero ? new byte[0] : null)
                  : null;
            }
            call(method, null, arguments);
          }
        }
        if (!method.getName().startsWith("dispose")) {
          Object[] arguments = new Object[method.getParameterCount()];
          boolean plain = true;
          for (int i = 0; i < arguments.length; i++) {
            Class<?> t = method.getParameterTypes()[i];
            plain &= t == long.class || !t.isPrimitive();
            arguments[i] = t == long.class ? (Object) cache.getNativeHandle() : null;
          }
          if (plain) {
            call(method, null, arguments);
          }
        }
      }
    }
    prepared(new File(args[0], "prepared").getPath());
    RocksDB.listColumnFamilies(new Options(), args[0]);
    System.out.println("hostile calls: " + calls + ", exceptions: " + thrown + " " + kinds);
    if (calls < 200) {
      throw new AssertionError("too few");
    }
    read.close();
  }
}
