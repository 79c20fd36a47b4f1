import java.io.File;
import java.util.*;
import org.rocksdb.*;

/** Transactions of both kinds, their locks, snapshots and save points. See {@link Groups}. */
class Transactions {
  static byte[] b(String s) { return Groups.b(s); }

  static String s(byte[] bytes) { return Groups.s(bytes); }

  static void run() throws Exception {
    locking();
    families();
    deadlock();
    twoPhases();
    optimistic();
    buffers();
    lifetimes();
  }

  static void counts(String what, Transaction t) {
    Groups.say(what, t.getNumKeys(), t.getNumPuts(), t.getNumDeletes(), t.getNumMerges(),
        t.getState());
  }

  static void locking() throws Exception {
    try (Options options = new Options().setCreateIfMissing(true)
            .setMergeOperator(new StringAppendOperator());
        TransactionDBOptions how = new TransactionDBOptions().setTransactionLockTimeout(50)
            .setDefaultLockTimeout(50);
        TransactionDB db = TransactionDB.open(options, how, Groups.path("txn"));
        WriteOptions write = new WriteOptions(); ReadOptions read = new ReadOptions()) {
      Groups.say("txn options", how.getMaxNumLocks(), how.getNumStripes(),
          how.getTransactionLockTimeout(),
          how.getDefaultLockTimeout(), how.getWritePolicy());
      db.put(b("k"), b("0"));
      try (Transaction one = db.beginTransaction(write);
          Transaction two = db.beginTransaction(write)) {
        one.put(b("k"), b("1"));
        one.put(b("l"), b("1"));
        one.delete(b("gone"));
        one.merge(b("m"), b("x"));
        one.singleDelete(b("single"));
        one.putUntracked(b("u"), b("1"));
        counts("txn counts", one);
        Groups.say("txn reads", s(one.get(read, b("k"))), s(two.get(read, b("k"))),
            s(db.get(b("k"))));
        Groups.tell("txn locked", () -> { two.put(b("k"), b("2")); return null; });
        Groups.tell("txn locked for a write", () -> { db.put(b("k"), b("3")); return null; });
        Groups.tell("txn locked for a batch", () -> {
          try (WriteBatch batch = new WriteBatch()) {
            batch.put(b("k"), b("4"));
            db.write(write, batch);
          }
          return null;
        });
        Groups.tell("txn range", () -> { db.deleteRange(b("a"), b("b")); return null; });
        Map<Long, TransactionDB.KeyLockInfo> locks = db.getLockStatusData();
        Groups.say("txn locks", locks.keySet(), locks.values().iterator().next().isExclusive());
        one.commit();
        counts("txn committed", one);
        Groups.say("txn after", s(db.get(b("k"))), s(db.get(b("l"))), s(db.get(b("m"))),
            s(db.get(b("u"))));
        two.put(b("k"), b("2"));
        two.rollback();
        Groups.say("txn rolled back", s(db.get(b("k"))), two.getState());
      }
      try (Transaction t = db.beginTransaction(write)) {
        t.put(b("s"), b("1"));
        t.setSavePoint();
        t.put(b("s"), b("2"));
        t.put(b("t"), b("2"));
        Groups.say("save point before", s(t.get(read, b("s"))), t.getNumKeys());
        t.rollbackToSavePoint();
        Groups.say("save point after", s(t.get(read, b("s"))), s(t.get(read, b("t"))),
            t.getNumKeys());
        Groups.tell("no save point in it", () -> { t.rollbackToSavePoint(); return null; });
        t.commit();
      }
      try (TransactionOptions begin = new TransactionOptions().setSetSnapshot(true);
          Transaction t = db.beginTransaction(write, begin)) {
        Groups.say("begin", begin.isSetSnapshot(), begin.getLockTimeout(), begin.getExpiration(),
            begin.getDeadlockDetectDepth(), begin.getMaxWriteBatchSize(), begin.isDeadlockDetect());
        db.put(b("k"), b("later"));
        Groups.tell("written since", () -> { t.put(b("k"), b("5")); return null; });
        try (ReadOptions then = new ReadOptions().setSnapshot(t.getSnapshot())) {
          Groups.say("snapshot of it", s(t.get(then, b("k"))), s(t.get(read, b("k"))));
        }
        t.clearSnapshot();
        Groups.say("no snapshot", t.getSnapshot() == null);
        t.put(b("k"), b("6"));
        t.commit();
      }
      try (Transaction t = db.beginTransaction(write);
          Transaction other = db.beginTransaction(write)) {
        Groups.say("for update", s(t.getForUpdate(read, b("k"), true)), s(t.getForUpdate(read,
            b("none"), false)));
        Groups.tell("held by a reader", () -> { other.put(b("k"), b("7")); return null; });
        Groups.tell("shared", () -> other.getForUpdate(read, b("none"), false));
        t.undoGetForUpdate(b("k"));
        other.put(b("k"), b("7"));
        other.commit();
        List<byte[]> found = t.multiGetAsList(read, Arrays.asList(b("k"), b("nothing"), b("l")));
        Groups.say("txn multi get", found.stream().map(Groups::s).toArray());
        found = t.multiGetForUpdateAsList(read, Arrays.asList(b("k"), b("nothing")));
        Groups.say("txn multi get for update", found.stream().map(Groups::s).toArray(),
            t.getNumKeys());
      }
      try (Transaction t = db.beginTransaction(write)) {
        List<Long> told = new ArrayList<>();
        try (AbstractTransactionNotifier notifier = new AbstractTransactionNotifier() {
          @Override
          public void snapshotCreated(Snapshot snapshot) { told.add(snapshot.getSequenceNumber()); }
        }) {
          t.setSnapshotOnNextOperation(notifier);
          Groups.say("not yet", told.size(), t.getSnapshot() == null);
          t.put(b("n"), b("1"));
          Groups.say("told", told.size(), told.get(0) == t.getSnapshot().getSequenceNumber());
        }
        t.put(b("n2"), b("2"));
        StringBuilder all = new StringBuilder();
        try (RocksIterator it = t.getIterator(read)) {
          for (it.seek(b("m")); it.isValid(); it.next()) {
            all.append(s(it.key())).append('=').append(s(it.value())).append(' ');
          }
        }
        Groups.say("txn iterator", all);
        Groups.say("txn batch", t.getWriteBatch().count(), t.getWriteOptions().sync());
        try (WriteBatch batch = new WriteBatch()) {
          batch.put(b("r"), b("rebuilt"));
          t.rebuildFromWriteBatch(batch);
        }
        t.disableIndexing();
        t.put(b("hidden"), b("h"));
        t.enableIndexing();
        Groups.say("not indexed", s(t.get(read, b("hidden"))), s(t.get(read, b("r"))));
        Groups.say("waiting", t.getWaitingTxns().getTransactionIds().length, t.getID() > 0);
        t.commit();
        Groups.say("not indexed, committed", s(db.get(b("hidden"))));
        Groups.tell("committed twice", () -> { t.commit(); return null; });
        Transaction again = db.beginTransaction(write, t);
        Groups.say("again", again == t, again.getState(), again.getNumKeys());
        again.put(b("again"), b("1"));
        again.commit();
      }
      try (TransactionOptions begin = new TransactionOptions().setExpiration(1);
          Transaction t = db.beginTransaction(write, begin)) {
        t.put(b("late"), b("1"));
        Thread.sleep(20);
        Groups.tell("expired", () -> { t.commit(); return null; });
      }
      try (TransactionOptions begin = new TransactionOptions().setMaxWriteBatchSize(40);
          Transaction t = db.beginTransaction(write, begin)) {
        Groups.tell("too large", () -> { t.put(b("large"), new byte[100]); return null; });
      }
    }
  }

  static void families() throws Exception {
    List<ColumnFamilyHandle> handles = new ArrayList<>();
    try (DBOptions options = new DBOptions().setCreateIfMissing(true)
            .setCreateMissingColumnFamilies(true);
        ColumnFamilyOptions family = new ColumnFamilyOptions();
            TransactionDBOptions how = new TransactionDBOptions();
        WriteOptions write = new WriteOptions(); ReadOptions read = new ReadOptions();
        TransactionDB db = TransactionDB.open(options, how, Groups.path("txn families"),
            Arrays.asList(new ColumnFamilyDescriptor(RocksDB.DEFAULT_COLUMN_FAMILY, family),
                new ColumnFamilyDescriptor(b("one"), family)), handles)) {
      ColumnFamilyHandle one = handles.get(1);
      try (Transaction t = db.beginTransaction(write)) {
        t.put(one, b("k"), b("in one"));
        t.put(one, new byte[][] {b("in "), b("parts")}, new byte[][] {b("a"), b("b")});
        t.delete(one, new byte[][] {b("no"), b("ne")});
        Groups.say("families of it", s(t.get(one, read, b("k"))), s(t.get(read, b("k"))));
        List<byte[]> found = t.multiGetAsList(read, Arrays.asList(one, handles.get(0)),
            Arrays.asList(b("k"), b("k")));
        Groups.say("families, several", found.stream().map(Groups::s).toArray());
        t.commit();
      }
      Groups.say("families after", s(db.get(one, b("k"))), s(db.get(one, b("in parts"))));
      ColumnFamilyHandle two = db.createColumnFamily(new ColumnFamilyDescriptor(b("two"), family));
      db.put(two, b("k"), b("2"));
      db.dropColumnFamily(two);
      two.close();
      for (ColumnFamilyHandle handle : handles) {
        handle.close();
      }
    }
  }

  static void deadlock() throws Exception {
    try (Options options = new Options().setCreateIfMissing(true);
        TransactionDBOptions how = new TransactionDBOptions();
        TransactionDB db = TransactionDB.open(options, how, Groups.path("txn deadlock"));
        WriteOptions write = new WriteOptions();
        TransactionOptions begin = new TransactionOptions().setDeadlockDetect(true)
            .setLockTimeout(5000)) {
      db.setDeadlockInfoBufferSize(3);
      try (Transaction one = db.beginTransaction(write, begin);
          Transaction two = db.beginTransaction(write, begin)) {
        one.put(b("a"), b("1"));
        two.put(b("b"), b("2"));
        Thread waits = new Thread(() -> {
          try {
            two.put(b("a"), b("2"));
          } catch (RocksDBException e) {
            throw new IllegalStateException(e);
          }
        });
        waits.start();
        Thread.sleep(300);
        Groups.tell("deadlock", () -> { one.put(b("b"), b("1")); return null; });
        Groups.say("detects", one.isDeadlockDetect());
        one.rollback();
        waits.join();
        two.commit();
      }
      Groups.say("after the deadlock", s(db.get(b("a"))), s(db.get(b("b"))));
      // getDeadlockInfoBuffer of the stock library throws: it writes past its array.
    }
  }

  static void twoPhases() throws Exception {
    try (Options options = new Options().setCreateIfMissing(true);
        TransactionDBOptions how = new TransactionDBOptions();
        WriteOptions write = new WriteOptions(); ReadOptions read = new ReadOptions()) {
      try (TransactionDB db = TransactionDB.open(options, how, Groups.path("txn phases"))) {
        Transaction t = db.beginTransaction(write);
        t.put(b("k"), b("prepared"));
        Groups.tell("prepared without a name", () -> { t.prepare(); return null; });
        t.setName("first");
        Groups.say("name", t.getName(), db.getTransactionByName("first") != null,
            db.getTransactionByName("none") == null);
        t.prepare();
        Groups.say("prepared", t.getState(), db.getAllPreparedTransactions().size(),
            s(db.get(b("k"))));
        t.close();
      }
      try (TransactionDB db = TransactionDB.open(options, how, Groups.path("txn phases"))) {
        List<Transaction> all = db.getAllPreparedTransactions();
        Groups.say("found", all.size(), all.get(0).getName(), all.get(0).getState());
        db.getTransactionByName("first").commit();
        Groups.say("found and committed", s(db.get(b("k"))),
            db.getAllPreparedTransactions().size());
      }
    }
  }

  static void optimistic() throws Exception {
    List<ColumnFamilyHandle> handles = new ArrayList<>();
    try (DBOptions options = new DBOptions().setCreateIfMissing(true);
        ColumnFamilyOptions family = new ColumnFamilyOptions();
        WriteOptions write = new WriteOptions(); ReadOptions read = new ReadOptions();
        OptimisticTransactionDB db = OptimisticTransactionDB.open(options,
            Groups.path("optimistic"),
            Arrays.asList(new ColumnFamilyDescriptor(RocksDB.DEFAULT_COLUMN_FAMILY, family)),
                handles)) {
      try (Transaction one = db.beginTransaction(write);
          Transaction two = db.beginTransaction(write)) {
        one.put(b("k"), b("1"));
        two.put(b("k"), b("2"));
        one.commit();
        Groups.tell("conflict", () -> { two.commit(); return null; });
        two.rollback();
        Groups.say("optimistic", s(db.get(b("k"))), one.getID(), one.getState());
      }
      try (OptimisticTransactionOptions begin =
              new OptimisticTransactionOptions().setSetSnapshot(true);
          Transaction t = db.beginTransaction(write, begin)) {
        Groups.say("optimistic begin", begin.isSetSnapshot());
        t.getForUpdate(read, b("k"), true);
        db.put(b("k"), b("between"));
        t.put(b("other"), b("1"));
        Groups.tell("read and written since", () -> { t.commit(); return null; });
        t.rollback();
        Transaction again = db.beginTransaction(write, begin, t);
        again.put(b("k"), b("again"));
        again.commit();
      }
      Groups.tell("optimistic range", () -> { db.deleteRange(b("a"), b("b")); return null; });
      RocksDB base = db.getBaseDB();
      Groups.say("base", s(base.get(b("k"))));
      Groups.tell("optimistic name", () -> {
        try (Transaction t = db.beginTransaction(write)) {
          t.setName("name");
        }
        return null;
      });
      for (ColumnFamilyHandle handle : handles) {
        handle.close();
      }
    }
    try (Options options = new Options().setCreateIfMissing(true);
        OptimisticTransactionDB db = OptimisticTransactionDB.open(options,
            Groups.path("optimistic one"))) {
      db.put(b("k"), b("v"));
      Groups.say("optimistic alone", s(db.get(b("k"))));
    }
  }

  static void buffers() throws Exception {
    try (Options options = new Options().setCreateIfMissing(true);
        TransactionDBOptions how = new TransactionDBOptions();
        TransactionDB db = TransactionDB.open(options, how, Groups.path("txn buffers"));
        WriteOptions write = new WriteOptions(); ReadOptions read = new ReadOptions();
        Transaction t = db.beginTransaction(write)) {
      java.nio.ByteBuffer key = java.nio.ByteBuffer.allocateDirect(16);
      java.nio.ByteBuffer value = java.nio.ByteBuffer.allocateDirect(16);
      key.put(b("direct")).flip();
      value.put(b("buffer")).flip();
      t.put(key, value);
      key.flip();
      java.nio.ByteBuffer to = java.nio.ByteBuffer.allocateDirect(4);
      GetStatus got = t.get(read, key, to);
      Groups.say("txn direct", got.status.getCode(), got.requiredSize, to.remaining());
      byte[] room = new byte[3];
      got = t.get(read, b("direct"), room);
      Groups.say("txn into", got.status.getCode(), got.requiredSize, s(room));
      got = t.get(read, b("none"), room);
      Groups.say("txn into, none", got.status.getCode(), got.requiredSize);
      t.commit();
    }
  }

  /** Closing twice and in an unusual order, where the stock library allows it. */
  static void lifetimes() throws Exception {
    try (Options options = new Options().setCreateIfMissing(true);
        TransactionDBOptions how = new TransactionDBOptions();
        WriteOptions write = new WriteOptions()) {
      TransactionDB db = TransactionDB.open(options, how, Groups.path("txn lifetimes"));
      Transaction t = db.beginTransaction(write);
      t.put(b("k"), b("v"));
      t.close();
      t.close();
      Groups.say("dropped", s(db.get(b("k"))));
      db.closeE();
      db.close();
      db.close();
      Groups.say("closed", new File(Groups.path("txn lifetimes"), "CURRENT").exists());
    }
  }
}
