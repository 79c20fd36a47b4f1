package org.rocksdb;

/** The class that RocketMQ's build of the library has beyond those of the stock jar. */
public class RemoveConsumeQueueCompactionFilter extends AbstractCompactionFilter<Slice> {
  public RemoveConsumeQueueCompactionFilter(long firstKept) {
    super(createNewRemoveConsumeQueueCompactionFilter0(firstKept));
  }

  private static native long createNewRemoveConsumeQueueCompactionFilter0(long firstKept);
}
