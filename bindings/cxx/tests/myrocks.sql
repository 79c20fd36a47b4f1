-- Drawn on by tests/myrocks: Debian's MyRocks and ours have to print the same.
CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, a VARCHAR(40), b INT, KEY (b), UNIQUE KEY (a))
    ENGINE=ROCKSDB DEFAULT CHARSET=latin1 COLLATE=latin1_bin;
INSERT INTO t (a, b) VALUES ('one', 1), ('two', 2), ('three', 3), ('four', NULL);
INSERT INTO t (a, b) SELECT CONCAT('n', seq), seq MOD 7 FROM seq_1_to_2000;
SELECT COUNT(*), SUM(b) FROM t;
SELECT id, a, b FROM t WHERE id < 5 ORDER BY id;
SELECT a FROM t FORCE INDEX (b) WHERE b = 3 ORDER BY b, id LIMIT 3;
SELECT a FROM t FORCE INDEX (b) WHERE b >= 5 ORDER BY b DESC, id DESC LIMIT 3;
INSERT INTO t (a, b) VALUES ('one', 9);
BEGIN;
UPDATE t SET b = b + 100 WHERE id BETWEEN 1 AND 10;
SELECT SUM(b) FROM t;
ROLLBACK;
SELECT SUM(b) FROM t;
BEGIN;
DELETE FROM t WHERE b = 6;
COMMIT;
SELECT COUNT(*), SUM(b) FROM t;
SET GLOBAL rocksdb_force_flush_memtable_now = 1;
SET GLOBAL rocksdb_compact_cf = 'default';
SELECT COUNT(*), SUM(b), MIN(a), MAX(a) FROM t;
CREATE TABLE r (k INT, v BLOB, PRIMARY KEY (k) COMMENT 'rev:other') ENGINE=ROCKSDB;
INSERT INTO r VALUES (1, 'x'), (2, REPEAT('y', 5000)), (3, NULL);
SELECT k, LENGTH(v) FROM r ORDER BY k DESC;
SELECT k, LENGTH(v) FROM r ORDER BY k;
XA START 'x1';
INSERT INTO r VALUES (4, 'xa');
XA END 'x1';
XA PREPARE 'x1';
XA COMMIT 'x1';
SELECT k FROM r;
ALTER TABLE t ADD KEY (b, a);
CHECK TABLE t, r;
CHECKSUM TABLE t, r;
ANALYZE TABLE t;
SELECT cf_name, option_type, value FROM information_schema.rocksdb_cf_options
    WHERE option_type IN ('COMPARATOR', 'WRITE_BUFFER_SIZE') ORDER BY cf_name, option_type;
