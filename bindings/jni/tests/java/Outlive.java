import java.io.File;
import java.util.*;
import org.rocksdb.*;

/**
 * Objects that are open when their database is closed. The directory can be opened again, what is
 * left throws when it is used, and closing it late is allowed.
 */
public class Outlive {
  interface Use {
    void run() throws Exception;
  }

  static void fails(String what, Use use) {
    try {
      use.run();
    } catch (IllegalStateException | RocksDBException e) {
      return;
    } catch (Exception e) {
      throw new AssertionError(what, e);
    }
    throw new AssertionError(what + " answered after its database was closed");
  }

  /** Everything is there, and the lock is free. */
  static void reopen(String dir) throws RocksDBException {
    try (Options options = new Options(); RocksDB db = RocksDB.open(options, dir)) {
      if (!Arrays.equals(db.get("k".getBytes()), "v".getBytes())) {
        throw new AssertionError("a value is gone");
      }
    }
  }

  static void plain(String dir) throws RocksDBException {
    Options options = new Options().setCreateIfMissing(true);
    RocksDB db = RocksDB.open(options, dir);
    db.put("k".getBytes(), "v".getBytes());
    Checkpoint checkpoint = Checkpoint.create(db);
    TransactionLogIterator updates = db.getUpdatesSince(1);
    RocksIterator iterator = db.newIterator();
    iterator.seekToFirst();
    Snapshot snapshot = db.getSnapshot();
    ColumnFamilyHandle family =
        db.createColumnFamily(new ColumnFamilyDescriptor("other".getBytes()));
    db.close();
    reopen2(dir);

    fails("a checkpoint", () -> checkpoint.createCheckpoint(dir + "-copy"));
    fails("an iterator", iterator::next);
    fails("updates", updates::next);
    fails("a snapshot", snapshot::getSequenceNumber);
    fails("a family", family::getName);
    checkpoint.close();
    updates.close();
    iterator.close();
    snapshot.close();
    family.close();
    // Once more is nothing.
    checkpoint.close();
    updates.close();
    db.close();
    options.close();
  }

  static void reopen2(String dir) throws RocksDBException {
    List<ColumnFamilyHandle> handles = new ArrayList<>();
    List<ColumnFamilyDescriptor> all = Arrays.asList(
        new ColumnFamilyDescriptor("default".getBytes()),
        new ColumnFamilyDescriptor("other".getBytes()));
    try (DBOptions options = new DBOptions();
         RocksDB db = RocksDB.open(options, dir, all, handles)) {
      if (!Arrays.equals(db.get("k".getBytes()), "v".getBytes())) {
        throw new AssertionError("a value is gone");
      }
    }
    // After the database, as programs do that close everything in a list.
    handles.forEach(ColumnFamilyHandle::close);
  }

  static void locking(String dir) throws RocksDBException {
    Options options = new Options().setCreateIfMissing(true);
    TransactionDBOptions how = new TransactionDBOptions();
    WriteOptions write = new WriteOptions();
    TransactionDB db = TransactionDB.open(options, how, dir);
    db.put("k".getBytes(), "v".getBytes());
    Transaction txn = db.beginTransaction(write);
    txn.put("t".getBytes(), "v".getBytes());
    WriteBatchWithIndex lent = txn.getWriteBatch();
    RocksIterator iterator = txn.getIterator(new ReadOptions());
    Checkpoint checkpoint = Checkpoint.create(db);
    db.close();
    reopen(dir);
    fails("a transaction", txn::commit);
    fails("a lent batch", lent::count);
    fails("a checkpoint", () -> checkpoint.createCheckpoint(dir + "-copy"));
    iterator.close();
    txn.close();
    checkpoint.close();
  }

  static void optimistic(String dir) throws RocksDBException {
    Options options = new Options().setCreateIfMissing(true);
    WriteOptions write = new WriteOptions();
    OptimisticTransactionDB db = OptimisticTransactionDB.open(options, dir);
    db.put("k".getBytes(), "v".getBytes());
    RocksDB base = db.getBaseDB();
    Transaction txn = db.beginTransaction(write);
    txn.put("t".getBytes(), "v".getBytes());
    Checkpoint checkpoint = Checkpoint.create(db);
    RocksIterator iterator = db.newIterator();
    db.close();
    reopen(dir);
    fails("a base handle", () -> base.get("k".getBytes()));
    fails("a transaction", txn::commit);
    fails("a checkpoint", () -> checkpoint.createCheckpoint(dir + "-copy"));
    iterator.close();
    checkpoint.close();
    txn.close();
    base.close();
  }

  public static void main(String[] args) throws Exception {
    RocksDB.loadLibrary();
    plain(new File(args[0], "plain").getPath());
    locking(new File(args[0], "locking").getPath());
    optimistic(new File(args[0], "optimistic").getPath());
    System.out.println("outlive: every object failed cleanly, every directory was free");
  }
}
