import java.nio.ByteBuffer;
import java.util.*;
import org.rocksdb.*;

/**
 * RocketMQ's filter, which its own build of the library has: entries whose messages are gone leave
 * the queues when they are compacted.
 */
public class Queues {
  static final long FIRST_KEPT = 1000;

  /** An entry of this many bytes, which begins with the offset of its message. */
  static byte[] entry(int size, long offset) {
    return Arrays.copyOf(ByteBuffer.allocate(Math.max(size, 8)).putLong(offset).array(), size);
  }

  public static void main(String[] args) throws Exception {
    RocksDB.loadLibrary();
    int[] sizes = {0, 7, 8, 27, 28, 36, 100};
    long[] offsets = {0, FIRST_KEPT - 1, FIRST_KEPT, Long.MAX_VALUE, -1, Long.MIN_VALUE};
    try (AbstractCompactionFilterFactory<RemoveConsumeQueueCompactionFilter> factory =
             new AbstractCompactionFilterFactory<RemoveConsumeQueueCompactionFilter>() {
               @Override
               public String name() {
                 return "queues";
               }

               @Override
               public RemoveConsumeQueueCompactionFilter createCompactionFilter(
                   AbstractCompactionFilter.Context context) {
                 return new RemoveConsumeQueueCompactionFilter(FIRST_KEPT);
               }
             };
         Options options = new Options().setCreateIfMissing(true)
             .setCompactionFilterFactory(factory);
         RocksDB db = RocksDB.open(options, args[0])) {
      for (int size : sizes) {
        for (long offset : offsets) {
          db.put((size + " " + offset).getBytes(), entry(size, offset));
        }
      }
      db.put(new byte[0], entry(100, 0));
      db.compactRange();
      for (int size : sizes) {
        for (long offset : offsets) {
          boolean isThere = db.get((size + " " + offset).getBytes()) != null;
          if (isThere != (size < 28 || offset >= FIRST_KEPT)) {
            throw new AssertionError("an entry of " + size + " bytes at " + offset);
          }
        }
      }
      if (db.get(new byte[0]) == null) {
        throw new AssertionError("the entry without a key is gone");
      }
    }
    System.out.println("queues: entries before the first message are gone, others are there");
  }
}
