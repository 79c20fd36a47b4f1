// The Go binding grocksdb on a library that is installed: the same page as c/quickstart.c.
//
//	export CGO_CFLAGS=-IPREFIX/include CGO_LDFLAGS="-LPREFIX/lib -lrocksdb"
//	go build -tags grocksdb_no_link
//	LD_LIBRARY_PATH=PREFIX/lib ./quickstart DIRECTORY
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/linxGnu/grocksdb"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: quickstart DIRECTORY")
		os.Exit(2)
	}
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// get returns a value as text, or "not found".
func get(db *grocksdb.DB, how *grocksdb.ReadOptions, key string) (string, error) {
	value, err := db.Get(how, []byte(key))
	if err != nil {
		return "", err
	}
	defer value.Free()
	if !value.Exists() {
		return "not found", nil
	}
	return string(value.Data()), nil
}

// entries counts what the database in a directory holds.
func entries(options *grocksdb.Options, path string) (int, error) {
	db, err := grocksdb.OpenDbForReadOnly(options, path, false)
	if err != nil {
		return 0, err
	}
	defer db.Close()
	how := grocksdb.NewDefaultReadOptions()
	defer how.Destroy()
	it := db.NewIterator(how)
	defer it.Close()
	count := 0
	for it.SeekToFirst(); it.Valid(); it.Next() {
		count++
	}
	return count, it.Err()
}

func run(directory string) error {
	options := grocksdb.NewDefaultOptions()
	defer options.Destroy()
	options.SetCreateIfMissing(true)
	path := filepath.Join(directory, "db")
	db, err := grocksdb.OpenDb(options, path)
	if err != nil {
		return err
	}
	read, write := grocksdb.NewDefaultReadOptions(), grocksdb.NewDefaultWriteOptions()
	defer read.Destroy()
	defer write.Destroy()

	if err := db.Put(write, []byte("colour"), []byte("green")); err != nil {
		return err
	}
	value, err := get(db, read, "colour")
	if err != nil {
		return err
	}
	fmt.Println("colour =", value)
	if value, err = get(db, read, "missing"); err != nil {
		return err
	}
	fmt.Println("missing:", value)

	// Several writes, all or nothing.
	batch := grocksdb.NewWriteBatch()
	for i, key := range []string{"apple", "banana", "cherry"} {
		batch.Put([]byte(key), []byte(fmt.Sprint(i+1)))
	}
	batch.Delete([]byte("colour"))
	err = db.Write(write, batch)
	batch.Destroy()
	if err != nil {
		return err
	}

	// In order, both ways. What an iterator returns is its own until it moves.
	it := db.NewIterator(read)
	var pairs, backwards []string
	for it.SeekToFirst(); it.Valid(); it.Next() {
		pairs = append(pairs, string(it.Key().Data())+"="+string(it.Value().Data()))
	}
	for it.SeekForPrev([]byte("c")); it.Valid(); it.Prev() {
		backwards = append(backwards, string(it.Key().Data()))
	}
	err = it.Err()
	it.Close()
	if err != nil {
		return err
	}
	fmt.Printf("%d entries: %s\n", len(pairs), strings.Join(pairs, " "))
	fmt.Println("backwards from c:", strings.Join(backwards, " "))

	// A snapshot keeps what was there.
	snapshot := db.NewSnapshot()
	for _, pair := range [][2]string{{"apple", "10"}, {"damson", "4"}, {"elder", "5"}} {
		if err := db.Put(write, []byte(pair[0]), []byte(pair[1])); err != nil {
			return err
		}
	}
	earlier := grocksdb.NewDefaultReadOptions()
	earlier.SetSnapshot(snapshot)
	then, err := get(db, earlier, "apple")
	if err != nil {
		return err
	}
	now, err := get(db, read, "apple")
	if err != nil {
		return err
	}
	fmt.Printf("snapshot sees apple=%s, now apple=%s\n", then, now)
	earlier.Destroy()
	db.ReleaseSnapshot(snapshot)

	// A checkpoint is a database of its own, made of links to the same files.
	maker, err := db.NewCheckpoint()
	if err != nil {
		return err
	}
	checkpoint := filepath.Join(directory, "checkpoint")
	err = maker.CreateCheckpoint(checkpoint, 0)
	maker.Destroy()
	if err != nil {
		return err
	}
	count, err := entries(options, checkpoint)
	if err != nil {
		return err
	}
	fmt.Printf("checkpoint: %d entries\n", count)

	// Backups share files with each other, not with the database.
	backups, err := grocksdb.CreateBackupEngineWithPath(db, filepath.Join(directory, "backups"))
	if err != nil {
		return err
	}
	if err := backups.CreateNewBackup(); err != nil {
		return err
	}
	restored := filepath.Join(directory, "restored")
	how := grocksdb.NewRestoreOptions()
	err = backups.RestoreDBFromLatestBackup(restored, restored, how)
	how.Destroy()
	backups.Close()
	if err != nil {
		return err
	}
	if count, err = entries(options, restored); err != nil {
		return err
	}
	fmt.Printf("restored backup: %d entries\n", count)

	// An error is text that begins with its kind.
	db.Close()
	options.SetErrorIfExists(true)
	if _, err = grocksdb.OpenDb(options, path); err != nil {
		fmt.Println("refused:", strings.SplitN(err.Error(), ":", 2)[0])
	}
	return nil
}
