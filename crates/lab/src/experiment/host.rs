//! Facts about the machine, and what the preflight finds wrong with it.
//!
//! Best effort: a fact that the system does not give is left out.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use md5::{Digest as _, Md5};

use super::record::Host;
use crate::process;

/// Fewer open files than this may end a run of an engine that keeps its tables open.
const FEW_FILES: u64 = 10_000;

fn read(path: impl AsRef<Path>) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_string())
}

/// The choice in brackets of a file such as `always [madvise] never`.
fn chosen(text: &str) -> Option<&str> {
    text.split_once('[')?
        .1
        .split_once(']')
        .map(|(word, _)| word)
}

/// The soft limit of open files in a text of `/proc/self/limits`.
fn file_limit(limits: &str) -> Option<u64> {
    let line = limits.lines().find(|l| l.starts_with("Max open files"))?;
    line.split_whitespace().nth(3)?.parse().ok()
}

/// Filesystem and source of a path in a text of `/proc/mounts`.
fn mount<'a>(mounts: &'a str, path: &Path) -> Option<(&'a str, &'a str)> {
    let lines = mounts.lines().filter_map(|line| {
        let mut fields = line.split_whitespace();
        let (source, place, kind) = (fields.next()?, fields.next()?, fields.next()?);
        path.starts_with(place)
            .then_some((place.len(), kind, source))
    });
    // Of mounts at one place the last is the one that is seen.
    let best = lines.fold(None, |best: Option<(usize, _, _)>, this| match best {
        Some(best) if best.0 > this.0 => Some(best),
        _ => Some(this),
    });
    best.map(|(_, kind, source)| (kind, source))
}

/// Free bytes of the filesystem of a directory.
fn free_bytes(directory: &Path) -> Option<u64> {
    let found = rustix::fs::statvfs(directory).ok()?;
    Some(found.f_bavail * found.f_frsize)
}

/// Limits of the queue of the block device below a directory.
fn queue(directory: &Path) -> Option<String> {
    let number = fs::metadata(directory).ok()?.dev();
    let major = (number >> 8 & 0xFFF) | (number >> 32 & !0xFFF);
    let minor = (number & 0xFF) | (number >> 12 & !0xFF);
    let device = Path::new("/sys/dev/block").join(format!("{major}:{minor}"));
    // A partition has the queue of its disk.
    let queue = [device.join("queue"), device.join("../queue")];
    let queue = queue.iter().find(|queue| queue.exists())?;
    let value = |name: &str| read(queue.join(name)).unwrap_or_else(|| "?".into());
    let scheduler = value("scheduler");
    Some(format!(
        "scheduler {}, {} requests, {} KB each at most, readahead {} KB, rotational {}",
        chosen(&scheduler).unwrap_or(&scheduler),
        value("nr_requests"),
        value("max_sectors_kb"),
        value("read_ahead_kb"),
        value("rotational"),
    ))
}

fn gib(bytes: u64) -> String {
    format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30))
}

/// Describes the machine and the filesystem of `directory`, with warnings for a database of
/// `bytes`.
pub fn host(directory: &Path, bytes: u64) -> Host {
    let mut facts = vec![("machine".to_string(), process::machine())];
    let mut warnings = Vec::new();
    let mut fact = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            facts.push((name.to_string(), value));
        }
    };
    let mounts = read("/proc/mounts").unwrap_or_default();
    let whole = fs::canonicalize(directory).unwrap_or_else(|_| directory.to_path_buf());
    let filesystem = mount(&mounts, &whole).map(|(kind, source)| format!("{kind} on {source}"));
    fact("filesystem", filesystem);
    fact("device queue", queue(directory));
    let free = free_bytes(directory);
    fact("free disk", free.map(gib));
    if free.is_some_and(|free| free < bytes.saturating_mul(2)) {
        let text = format!(
            "the disk has less than twice the {} that are needed",
            gib(bytes)
        );
        warnings.push(text);
    }
    let files = file_limit(&read("/proc/self/limits").unwrap_or_default());
    fact("open files allowed", files.map(|n| n.to_string()));
    if let Some(files) = files.filter(|n| *n < FEW_FILES) {
        warnings.push(format!("only {files} open files are allowed (ulimit -n)"));
    }
    let governor = read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
    if let Some(governor) = governor.filter(|governor| governor != "performance") {
        warnings.push(format!(
            "the frequency governor is {governor}, not performance"
        ));
    }
    let huge = read("/sys/kernel/mm/transparent_hugepage/enabled");
    fact(
        "huge pages",
        huge.as_deref().and_then(chosen).map(String::from),
    );
    let swap = read("/proc/swaps").map_or(0, |text| text.lines().count().saturating_sub(1));
    fact("swap areas", Some(swap.to_string()));
    if swap > 0 {
        warnings.push("the machine has swap, which turns memory into latency".into());
    }
    let balloon = fs::read_dir("/sys/bus/virtio/drivers/virtio_balloon");
    let has_balloon = balloon.is_ok_and(|entries| {
        let mut names = entries.flatten().map(|entry| entry.file_name());
        names.any(|name| name.to_string_lossy().starts_with("virtio"))
    });
    fact("memory balloon", has_balloon.then(|| "present".to_string()));
    if cfg!(debug_assertions) {
        warnings.push("this program was built with checks for debugging: Esker is slower".into());
    }
    let load = process::load();
    if load > super::validity::OTHERS * process::processors() as f64 {
        warnings.push(format!(
            "the machine was not idle at the start (load {load:.2})"
        ));
    }
    Host {
        processors: process::processors(),
        facts,
        warnings,
        loads: Vec::new(),
    }
}

/// The MD5 of a file, as `md5sum` prints it, with the name of the function in front.
pub fn hash_of(path: &Path) -> Option<String> {
    let mut file = fs::File::open(path).ok()?;
    let mut hash = Md5::new();
    let mut block = vec![0; 1 << 20];
    loop {
        match std::io::Read::read(&mut file, &mut block).ok()? {
            0 => break,
            n => hash.update(&block[..n]),
        }
    }
    let digits = hash.finalize();
    let hex: String = digits.iter().map(|byte| format!("{byte:02x}")).collect();
    Some(format!("md5 {hex}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_cut_out_of_the_texts_of_the_system() {
        assert_eq!(chosen("always [madvise] never"), Some("madvise"));
        assert_eq!(chosen("none"), None);
        let limits = "Limit  Soft  Hard  Units\nMax open files            1024      4096   files\n";
        assert_eq!(file_limit(limits), Some(1024));
        let mounts =
            "rootfs / rootfs rw 0 0\n/dev/vda / ext4 rw 0 0\ntmpfs /dev/shm tmpfs rw 0 0\n";
        let of = |path: &str| mount(mounts, Path::new(path));
        assert_eq!(of("/data/db"), Some(("ext4", "/dev/vda")));
        assert_eq!(of("/dev/shm/db"), Some(("tmpfs", "tmpfs")));
    }

    #[test]
    fn this_machine_has_a_line_and_too_small_a_disk_is_told() {
        let directory = tempfile::tempdir().expect("a directory");
        let host = host(directory.path(), u64::MAX / 4);
        assert_eq!(host.facts[0].0, "machine");
        assert!(
            host.warnings
                .iter()
                .any(|w| w.contains("the disk has less")),
            "{:?}",
            host.warnings
        );
    }

    #[test]
    fn hashes_are_those_of_md5sum() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("file");
        fs::write(&path, "abc").expect("writes");
        let hash = hash_of(&path).expect("a hash");
        assert_eq!(hash, "md5 900150983cd24fb0d6963f7d28e17f72");
        assert_eq!(hash_of(&directory.path().join("none")), None);
    }
}
