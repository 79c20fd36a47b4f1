import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.rocksdb.*;

/**
 * A store with the stock jar of RocksDB; which engine is behind it depends on java.library.path
 * alone.
 */
public class Store {
  public static void main(String[] args) throws RocksDBException {
    RocksDB.loadLibrary();
    String path = args[0];
    List<ColumnFamilyHandle> families = new ArrayList<>();
    try (DBOptions options = new DBOptions().setCreateIfMissing(true)
             .setCreateMissingColumnFamilies(true);
        ColumnFamilyOptions family = new ColumnFamilyOptions();
        RocksDB db = RocksDB.open(options, path + "/db",
            Arrays.asList(new ColumnFamilyDescriptor(RocksDB.DEFAULT_COLUMN_FAMILY, family),
                new ColumnFamilyDescriptor("people".getBytes(), family)), families)) {
      ColumnFamilyHandle people = families.get(1);
      db.put(people, "ada".getBytes(), "1815".getBytes());
      db.put(people, "grace".getBytes(), "1906".getBytes());
      Snapshot before = db.getSnapshot();
      db.delete(people, "ada".getBytes());
      try (ReadOptions then = new ReadOptions().setSnapshot(before)) {
        System.out.println("ada was born in " + new String(db.get(people, then, "ada".getBytes()))
            + ", and now is " + db.get(people, "ada".getBytes()));
      }
      db.releaseSnapshot(before);
      try (RocksIterator it = db.newIterator(people)) {
        for (it.seekToFirst(); it.isValid(); it.next()) {
          System.out.println(new String(it.key()) + " = " + new String(it.value()));
        }
      }
      try (Checkpoint checkpoint = Checkpoint.create(db)) {
        checkpoint.createCheckpoint(path + "/checkpoint");
      }
      people.close();
      families.get(0).close();
    }
    try (Options options = new Options()) {
      System.out.println("families of the checkpoint: "
          + RocksDB.listColumnFamilies(options, path + "/checkpoint").size());
    }
  }
}
