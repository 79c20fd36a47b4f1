import java.io.File;
import java.util.*;
import org.rocksdb.*;

/** Backups. See {@link Groups}. */
class Backups {
  static void run() throws Exception {
    String dir = Groups.path("backups");
    new File(dir).mkdirs();
    try (Options options = new Options().setCreateIfMissing(true);
        BackupEngineOptions how = new BackupEngineOptions(dir);
        RocksDB db = RocksDB.open(options, Groups.path("backed up"))) {
      Groups.say("backup options", how.backupDir().equals(dir), how.shareTableFiles(), how.sync(),
          how.destroyOldData(),
          how.backupLogFiles(), how.backupRateLimit(), how.restoreRateLimit(),
              how.shareFilesWithChecksum(),
          how.maxBackgroundOperations(), how.callbackTriggerIntervalSize());
      how.setShareTableFiles(true).setSync(true).setMaxBackgroundOperations(2)
          .setBackupRateLimit(1 << 30);
      Groups.say("backup options set", how.maxBackgroundOperations(), how.backupRateLimit());
      db.put(Groups.b("k"), Groups.b("one"));
      try (BackupEngine backups = BackupEngine.open(options.getEnv(), how)) {
        backups.createNewBackup(db, true);
        db.put(Groups.b("k"), Groups.b("two"));
        backups.createNewBackupWithMetadata(db, "the second", true);
        db.put(Groups.b("k"), Groups.b("three"));
        backups.createNewBackup(db, false);
        for (BackupInfo info : backups.getBackupInfo()) {
          Groups.say("backup", info.backupId(), info.size() > 0, info.numberFiles() > 0,
              info.timestamp() > 0,
              info.appMetadata());
        }
        backups.deleteBackup(3);
        Groups.tell("no such backup", () -> { backups.deleteBackup(99); return null; });
        Groups.say("corrupted", backups.getCorruptedBackups().length);
        backups.garbageCollect();
        try (RestoreOptions restore = new RestoreOptions(false)) {
          backups.restoreDbFromBackup(1, Groups.path("restored"), Groups.path("restored"), restore);
          backups.restoreDbFromLatestBackup(Groups.path("latest"), Groups.path("latest"), restore);
          Groups.tell("restored from none", () -> {
            backups.restoreDbFromBackup(7, Groups.path("restored"), Groups.path("restored"),
                restore);
            return null;
          });
        }
        backups.purgeOldBackups(1);
        Groups.say("left", backups.getBackupInfo().size());
      }
      for (String name : new String[] {"restored", "latest"}) {
        try (RocksDB copy = RocksDB.open(options, Groups.path(name))) {
          Groups.say(name, Groups.s(copy.get(Groups.b("k"))));
        }
      }
    }
  }
}
