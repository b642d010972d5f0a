//! Tests with archives as an attacker would make them.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::Path;

use ::tar::{EntryType, Header};
use cap_std::ambient_authority;
use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder};
use proptest::prelude::*;

use super::*;

const LIMITS: ArchiveLimits = ArchiveLimits {
    entries: 20,
    bytes: 100_000,
};

/// An entry of an archive that a test makes.
#[derive(Debug, Clone)]
struct TestEntry {
    path: Vec<u8>,
    kind: EntryType,
    link: Vec<u8>,
    text: Vec<u8>,
    mode: u32,
}

fn file(path: &str, text: &str) -> TestEntry {
    TestEntry {
        path: path.into(),
        kind: EntryType::Regular,
        link: Vec::new(),
        text: text.into(),
        mode: 0o644,
    }
}

fn entry(path: &str, kind: EntryType, link: &str) -> TestEntry {
    TestEntry {
        kind,
        link: link.into(),
        ..file(path, "")
    }
}

/// Writes a tar archive. Unlike `tar::Builder`, it writes any name, in a header of its own if it is long.
fn tar(entries: &[TestEntry]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for entry in entries {
        for (name, kind) in [
            (&entry.path, EntryType::GNULongName),
            (&entry.link, EntryType::GNULongLink),
        ] {
            if name.len() > 99 {
                append(
                    &mut bytes,
                    &TestEntry {
                        kind,
                        text: name.clone(),
                        ..file("././@LongLink", "")
                    },
                );
            }
        }
        append(&mut bytes, entry);
    }
    bytes.resize(bytes.len() + 1024, 0);
    bytes
}

fn append(bytes: &mut Vec<u8>, entry: &TestEntry) {
    let mut header = Header::new_gnu();
    let fill = |field: &mut [u8], name: &[u8]| {
        field
            .iter_mut()
            .zip(name)
            .for_each(|(to, from)| *to = *from);
    };
    fill(&mut header.as_old_mut().name, &entry.path);
    fill(&mut header.as_old_mut().linkname, &entry.link);
    header.set_entry_type(entry.kind);
    header.set_size(entry.text.len() as u64);
    header.set_mode(entry.mode);
    header.set_cksum();
    bytes.extend_from_slice(header.as_bytes());
    bytes.extend_from_slice(&entry.text);
    bytes.resize(bytes.len().next_multiple_of(512), 0);
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn bzip2(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = ::bzip2::write::BzEncoder::new(Vec::new(), ::bzip2::Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Writes a zip archive with the Unix modes of the entries.
fn zip(entries: &[TestEntry]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut archive = rawzip::ZipArchiveWriter::new(&mut bytes);
    for entry in entries {
        let kind = match entry.kind {
            EntryType::Symlink => 0o120_000,
            EntryType::Char => 0o020_000,
            _ => 0o100_000,
        };
        let text = match entry.kind {
            EntryType::Symlink => &entry.link,
            _ => &entry.text,
        };
        let path = rawzip::path::EntryPath::verbatim(entry.path.clone());
        let (mut output, config) = archive
            .new_file(path)
            .compression_method(rawzip::CompressionMethod::DEFLATE)
            .unix_permissions(kind | entry.mode)
            .start()
            .unwrap();
        let mut writer = config.wrap(DeflateEncoder::new(&mut output, Compression::best()));
        writer.write_all(text).unwrap();
        let (encoder, descriptor) = writer.finish().unwrap();
        encoder.finish().unwrap();
        output.finish(descriptor).unwrap();
    }
    archive.finish().unwrap();
    bytes
}

/// Unpacks to `inside` in a directory that contains nothing else, and returns what is in it afterwards.
struct Unpacked {
    root: tempfile::TempDir,
    result: Result<(), String>,
}

impl Unpacked {
    fn new(archive: &[u8], kind: ArchiveKind) -> Self {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("secret"), "untouched").unwrap();
        fs::create_dir(root.path().join("inside")).unwrap();
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(archive).unwrap();
        let to = Dir::open_ambient_dir(root.path().join("inside"), ambient_authority()).unwrap();
        let result = unpack(file, kind, &to, "agent", LIMITS);
        let unpacked = Self { root, result };
        unpacked.check_outside();
        unpacked
    }

    fn tar(entries: &[TestEntry]) -> Self {
        Self::new(&gzip(&tar(entries)), ArchiveKind::TarGz)
    }

    fn inside(&self) -> std::path::PathBuf {
        self.root.path().join("inside")
    }

    /// Checks that nothing outside the directory has been created, changed or removed.
    fn check_outside(&self) {
        let mut names: Vec<_> = fs::read_dir(self.root.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        names.sort();
        assert_eq!(names, ["inside", "secret"]);
        let secret = fs::read_to_string(self.root.path().join("secret")).unwrap();
        assert_eq!(secret, "untouched");
    }

    /// Returns the unpacked files and their texts. A link counts as the file that it leads to.
    fn files(&self) -> BTreeMap<String, String> {
        let mut files = BTreeMap::new();
        collect(&self.inside(), "", &mut files);
        files
    }

    fn expect_refused(&self, reason: &str) {
        let error = self.result.as_ref().unwrap_err();
        assert!(error.contains(reason), "expected {reason:?}: {error}");
    }
}

fn collect(directory: &Path, prefix: &str, files: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(directory).unwrap() {
        let entry = entry.unwrap();
        let name = format!("{prefix}{}", entry.file_name().to_str().unwrap());
        if entry.file_type().unwrap().is_dir() {
            collect(&entry.path(), &format!("{name}/"), files);
        } else {
            let mut text = String::new();
            File::open(entry.path())
                .unwrap()
                .read_to_string(&mut text)
                .unwrap();
            files.insert(name, text);
        }
    }
}

#[test]
fn all_kinds_of_archives_are_unpacked() {
    let long = format!("{}/{}/file", "a".repeat(90), "b".repeat(90));
    let mut program = file("bin/agent", "run");
    program.mode = 0o4755;
    let entries = [
        entry("./", EntryType::Directory, ""),
        program,
        file("./share/text", "words"),
        file(&long, "far"),
        entry("agent", EntryType::Symlink, "bin/agent"),
        entry("share/up", EntryType::Symlink, "../bin"),
    ];
    let plain = tar(&entries);
    for (archive, kind) in [
        (gzip(&plain), ArchiveKind::TarGz),
        (bzip2(&plain), ArchiveKind::TarBz2),
        (zip(entries.get(1..5).unwrap()), ArchiveKind::Zip),
    ] {
        let unpacked = Unpacked::new(&archive, kind);
        unpacked.result.as_ref().unwrap();
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = |name: &str| {
                let found = fs::metadata(unpacked.inside().join(name)).unwrap();
                found.permissions().mode() & 0o7777
            };
            assert_eq!(mode("bin/agent") & 0o7700, 0o700, "without setuid");
            assert_eq!(mode("share/text") & 0o7111, 0);
        }
        let _ = fs::remove_file(unpacked.inside().join("share/up"));
        let files = unpacked.files();
        let files: Vec<(&str, &str)> = files
            .iter()
            .map(|(a, b)| (a.as_str(), b.as_str()))
            .collect();
        assert_eq!(
            files,
            [
                (long.as_str(), "far"),
                ("agent", "run"),
                ("bin/agent", "run"),
                ("share/text", "words")
            ],
            "{kind:?}"
        );
    }
    let hard = [file("a", "same"), entry("b/c", EntryType::Link, "./a")];
    let unpacked = Unpacked::tar(&hard);
    unpacked.result.as_ref().unwrap();
    assert_eq!(unpacked.files()["b/c"], "same");
    let unpacked = Unpacked::new(b"#!/bin/sh\n", ArchiveKind::Program);
    unpacked.result.as_ref().unwrap();
    assert_eq!(unpacked.files()["agent"], "#!/bin/sh\n");
    Unpacked::new(&gzip(b"#!/bin/sh\n"), ArchiveKind::Program).expect_refused("it is an archive");
}

#[test]
fn paths_and_links_out_of_the_directory_are_refused() {
    let link = |path: &str, target: &str| entry(path, EntryType::Symlink, target);
    for (entries, reason) in [
        (vec![file("../secret", "x")], "contains `..`"),
        (vec![file("a/../../secret", "x")], "contains `..`"),
        (vec![file("/tmp/x", "x")], "is absolute"),
        (vec![file("..\\secret", "x")], "backslash"),
        (
            vec![link("a", "../secret")],
            "does not lead to a file of the archive",
        ),
        (
            vec![link("a", "/etc/passwd")],
            "does not lead to a file of the archive",
        ),
        (
            vec![link("a", "nowhere")],
            "does not lead to a file of the archive",
        ),
        (
            vec![link("a", "a")],
            "does not lead to a file of the archive",
        ),
        (vec![link("a", ".."), file("a/secret", "x")], "occurs twice"),
        (
            vec![file("d/x", ""), link("a", "d"), file("a/x", "x")],
            "occurs twice",
        ),
        (
            vec![link("secret", "../secret"), file("secret", "x")],
            "occurs twice",
        ),
        // The second link is inside, read as text, but leads outside through the first one.
        (
            vec![
                file("one/two/x", ""),
                link("one/two/up", "../.."),
                link("one/two/out", "up/../secret"),
            ],
            "does not lead to a file of the archive",
        ),
        (
            vec![entry("a", EntryType::Link, "../secret")],
            "contains `..`",
        ),
        (
            vec![entry("a", EntryType::Link, "/etc/passwd")],
            "is absolute",
        ),
        (
            vec![link("b", "../secret"), entry("a", EntryType::Link, "b")],
            "not a file before it",
        ),
        (
            vec![entry("a", EntryType::Link, "a")],
            "not a file before it",
        ),
    ] {
        Unpacked::tar(&entries).expect_refused(reason);
        if entries.iter().all(|entry| entry.kind != EntryType::Link) {
            Unpacked::new(&zip(&entries), ArchiveKind::Zip).expect_refused(reason);
        }
    }
}

#[test]
fn devices_duplicates_and_case_tricks_are_refused() {
    let named = |kind| vec![entry("a", kind, "")];
    for (entries, reason) in [
        (named(EntryType::Char), "device"),
        (named(EntryType::Block), "device"),
        (named(EntryType::Fifo), "named pipe"),
        (named(EntryType::GNUSparse), "unknown kind"),
        (vec![file("a", "1"), file("a", "2")], "occurs twice"),
        (vec![file("a", "1"), file("./a", "2")], "occurs twice"),
        (
            vec![file("Agent", "1"), file("agent", "2")],
            "differ only in case",
        ),
        (
            vec![file("Bin/a", "1"), file("bin/b", "2")],
            "differ only in case",
        ),
        (
            vec![file("ÄGENT", "1"), file("ägent", "2")],
            "differ only in case",
        ),
        (vec![file("a", "1"), file("a/b", "2")], "occurs twice"),
        (vec![file("a/b", "1"), file("a", "2")], "occurs twice"),
        (vec![file("", "1")], "no name"),
        (vec![], "it is empty"),
    ] {
        Unpacked::tar(&entries).expect_refused(reason);
    }
    Unpacked::new(&zip(&[file("a", "1"), file("a", "2")]), ArchiveKind::Zip)
        .expect_refused("occurs twice");
    Unpacked::new(&zip(&named(EntryType::Char)), ArchiveKind::Zip).expect_refused("neither a file");
}

#[test]
fn bombs_and_oversized_archives_are_refused() {
    let big = "0".repeat(200_000);
    let many: Vec<TestEntry> = (0..21).map(|n| file(&n.to_string(), "")).collect();
    let deep = vec![file(&format!("{}x", "a/".repeat(30)), "")];
    for (entries, reason) in [
        (vec![file("a", &big)], "more than 100000 bytes"),
        (
            vec![file("a", &big[..60_000]), file("b", &big[..60_000])],
            "more than 100000 bytes",
        ),
        (many, "more than 20 files"),
        (deep, "more than 20 files"),
    ] {
        Unpacked::tar(&entries).expect_refused(reason);
        Unpacked::new(&zip(&entries), ArchiveKind::Zip).expect_refused(reason);
    }
    // In what is not a file, there is no more room.
    let name = entry_of(EntryType::GNULongName, "n".repeat(80_000));
    Unpacked::tar(&[name]).expect_refused("a header is larger than");
    let global = entry_of(EntryType::XGlobalHeader, "0".repeat(1_000_000));
    Unpacked::tar(&[global, file("a", "")]).expect_refused("more than 100000 bytes");
    let mut endless = tar(&[file("a", "")]);
    endless.resize(10_000_000, 0);
    Unpacked::new(&gzip(&endless), ArchiveKind::TarGz).expect_refused("more than 100000 bytes");
}

fn entry_of(kind: EntryType, text: String) -> TestEntry {
    TestEntry {
        kind,
        ..file("x", &text)
    }
}

#[test]
fn extended_headers_are_read_within_limits() {
    let pax = |key: &str, value: &str| {
        let rest = format!(" {key}={value}\n");
        let length = rest.len() + 2;
        entry_of(EntryType::XHeader, format!("{length}{rest}"))
    };
    let unpacked = Unpacked::tar(&[pax("path", "right"), file("wrong", "text")]);
    unpacked.result.as_ref().unwrap();
    assert_eq!(unpacked.files()["right"], "text");
    for (header, reason) in [
        (pax("path", "../secret"), "contains `..`"),
        (pax("size", "000000"), "changes the size"),
        (pax("GNU.sparse.x", "1"), "sparse"),
    ] {
        Unpacked::tar(&[header, file("a", "text")]).expect_refused(reason);
    }
}

#[test]
fn archives_that_were_cut_off_or_changed_are_refused() {
    let text: String = (0..3000).map(|n| format!("{n} ")).collect();
    let entries = [file("a", &text), file("b", &text)];
    let plain = tar(&entries);
    for (archive, kind) in [
        (gzip(&plain), ArchiveKind::TarGz),
        (bzip2(&plain), ArchiveKind::TarBz2),
        (zip(&entries), ArchiveKind::Zip),
    ] {
        for length in (0..archive.len()).step_by(97).chain([archive.len() - 1]) {
            let result = Unpacked::new(&archive[..length], kind).result;
            assert!(result.is_err(), "{kind:?} of {length} bytes");
        }
        let mut changed = archive.clone();
        let middle = changed.len() / 3;
        changed[middle] ^= 0x40;
        assert!(Unpacked::new(&changed, kind).result.is_err(), "{kind:?}");
    }
}

#[test]
fn kind_of_a_download_follows_from_its_url() {
    let kind = |url: &str| ArchiveKind::from_url(&Url::parse(url).unwrap());
    assert_eq!(
        kind("https://a.example/x.TGZ?y=.zip"),
        Ok(ArchiveKind::TarGz)
    );
    assert_eq!(kind("https://a.example/x.tbz2"), Ok(ArchiveKind::TarBz2));
    assert_eq!(kind("https://a.example/x.zip#.gz"), Ok(ArchiveKind::Zip));
    assert_eq!(kind("https://a.example/x-1.2.3"), Ok(ArchiveKind::Program));
    assert_eq!(kind("https://a.example/x.exe"), Ok(ArchiveKind::Program));
    for ending in INSTALLERS.iter().chain(&OTHER_ARCHIVES) {
        kind(&format!("https://a.example/x{ending}")).unwrap_err();
    }
}

fn any_path() -> impl Strategy<Value = String> {
    let name = prop::sample::select(vec![
        "a", "A", "b", "..", ".", "", "secret", "inside", "c\\d",
    ]);
    prop::collection::vec(name, 1..4).prop_map(|names| names.join("/"))
}

fn any_entry() -> impl Strategy<Value = TestEntry> {
    use EntryType::{Directory, Fifo, Link, Regular, Symlink};
    let kind = prop::sample::select(vec![
        Regular, Regular, Directory, Symlink, Symlink, Link, Fifo,
    ]);
    (any_path(), kind, any_path()).prop_map(|(path, kind, link)| {
        let text = if kind == Regular { "changed" } else { "" };
        TestEntry {
            kind,
            link: link.into(),
            ..file(&path, text)
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn no_archive_touches_what_is_outside(entries in prop::collection::vec(any_entry(), 1..8)) {
        // `Unpacked::new` checks it.
        let unpacked = Unpacked::tar(&entries);
        Unpacked::new(&zip(&entries), ArchiveKind::Zip);
        if unpacked.result.is_ok() {
            let root = fs::canonicalize(unpacked.inside()).unwrap();
            let mut directories = vec![root.clone()];
            while let Some(directory) = directories.pop() {
                for entry in fs::read_dir(directory).unwrap() {
                    let entry = entry.unwrap();
                    prop_assert!(fs::canonicalize(entry.path()).unwrap().starts_with(&root));
                    if entry.file_type().unwrap().is_dir() {
                        directories.push(entry.path());
                    }
                }
            }
        }
    }

    #[test]
    fn no_bytes_are_too_strange(
        mut bytes in prop::collection::vec(any::<u8>(), 0..2000),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        start in 0..4usize,
    ) {
        let entries = [file("a/b", "text"), entry("c", EntryType::Symlink, "a")];
        match start {
            0 => {}
            1 => bytes = tar(&entries),
            _ => bytes = zip(&entries),
        }
        for (at, byte) in changes {
            if !bytes.is_empty() {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
        }
        // A tar archive is changed before it is compressed, or the checksum would stop all changes.
        let _ = Unpacked::new(&gzip(&bytes), ArchiveKind::TarGz);
        let _ = Unpacked::new(&bytes, ArchiveKind::Zip);
        let _ = Unpacked::new(&bytes, ArchiveKind::TarBz2);
    }
}
