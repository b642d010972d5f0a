//! Tests of unsaved buffers in an editor, which an agent sees instead of the files.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use crate::common::one_session::OneSession;
use crate::common::scene::EscapeScene;
use crate::common::with_timeout;
use acp::ThreadHandle;
use acp::client::PermissionRequest;
use acp_host::{
    BufferChange, BufferFreshness, BufferWrite, BufferWriteError, Buffers, Files, Host,
    MemoryBuffers, Policy, Prompter,
};
use acp_wire::jsonrpc::Error;
use acp_wire::v1::{PermissionOptionId, ReadTextFileRequest, WriteTextFileRequest};

struct OverlayFixture {
    scene: EscapeScene,
    overlay: MemoryBuffers,
    files: Files,
    /// A file that contains `inside` on disk and is open in the editor.
    file: PathBuf,
}

impl OverlayFixture {
    fn new(overlay: MemoryBuffers) -> Self {
        let scene = EscapeScene::new();
        let file = scene.root.join("file");
        overlay.open(&file, "inside");
        let files = Files::new([scene.root.clone()])
            .unwrap()
            .with_buffers(overlay.clone());
        Self {
            scene,
            overlay,
            files,
            file,
        }
    }

    fn buffer_text(&self) -> String {
        self.overlay.text(&self.file).unwrap().to_string()
    }

    fn read_from_disk(&self) -> String {
        fs::read_to_string(&self.file).unwrap()
    }

    async fn read(&self, session: &str) -> String {
        let request = ReadTextFileRequest::new(session, self.file.to_str().unwrap());
        with_timeout(self.files.read(&request))
            .await
            .unwrap()
            .content
    }

    async fn write(&self, session: &str, text: &str) -> Result<(), Error> {
        let request = WriteTextFileRequest::new(session, self.file.to_str().unwrap(), text);
        with_timeout(self.files.write(&request)).await.map(drop)
    }
}

#[tokio::test]
async fn agent_reads_the_open_buffer() {
    let editor = OverlayFixture::new(MemoryBuffers::new());
    editor.overlay.edit(&editor.file, "one\ntwo\r\nthree");
    let files = &editor.files;
    for (line, limit, expected) in [
        (None, None, "one\ntwo\r\nthree"),
        (Some(2), Some(1), "two\r\n"),
        (Some(3), None, "three"),
        (Some(4), None, ""),
    ] {
        let read = with_timeout(files.read_text(&editor.file, line, limit)).await;
        assert_eq!(read.unwrap(), expected);
    }
    // As large as the limit for one read, and no larger.
    let small = files.clone().max_read(7);
    let error = with_timeout(small.read_text(&editor.file, None, None))
        .await
        .unwrap_err();
    assert!(error.message.contains("limit: 7 bytes"), "{error}");
    assert_eq!(
        with_timeout(small.read_text(&editor.file, Some(2), Some(1)))
            .await
            .unwrap(),
        "two\r\n"
    );
    // The file is closed without saving.
    editor.overlay.close(&editor.file);
    assert_eq!(editor.read("s").await, "inside");
}

#[tokio::test]
async fn unsaved_new_file_can_be_read_and_written() {
    let editor = OverlayFixture::new(MemoryBuffers::new());
    let new = editor.scene.root.join("new/untitled");
    editor.overlay.open(&new, "");
    editor.overlay.edit(&new, "typed");
    assert_eq!(
        with_timeout(editor.files.read_text(&new, None, None))
            .await
            .unwrap(),
        "typed"
    );
    with_timeout(editor.files.write_text(&new, "written"))
        .await
        .unwrap();
    assert_eq!(editor.overlay.text(&new).as_deref(), Some("written"));
    assert!(!new.exists());
}

#[tokio::test]
async fn agent_write_goes_to_the_buffer_until_saved() {
    let editor = OverlayFixture::new(MemoryBuffers::new());
    editor.write("s", "written").await.unwrap();
    assert_eq!(
        (&*editor.buffer_text(), &*editor.read_from_disk()),
        ("written", "inside")
    );
    assert!(editor.overlay.is_unsaved(&editor.file));
    // The agent knows the text that it wrote itself.
    editor.write("s", "again").await.unwrap();
    assert_eq!(editor.read("s").await, "again");
    assert_eq!(editor.read_from_disk(), "inside");
    // A file that is not open is written to disk.
    let other = editor.scene.root.join("sub/file");
    with_timeout(editor.files.write_text(&other, "written"))
        .await
        .unwrap();
    assert_eq!(fs::read_to_string(other).unwrap(), "written");
}

#[tokio::test]
async fn autosaving_editor_updates_buffer_and_file() {
    let editor = OverlayFixture::new(MemoryBuffers::with_disk_writes());
    editor.overlay.edit(&editor.file, "typed");
    assert_eq!(editor.read("s").await, "typed");
    editor.write("s", "written").await.unwrap();
    assert_eq!(
        (&*editor.buffer_text(), &*editor.read_from_disk()),
        ("written", "written")
    );
    assert!(!editor.overlay.is_unsaved(&editor.file));

    // The file cannot be saved. The agent gets an error, and the user has an unsaved buffer.
    fs::remove_file(&editor.file).unwrap();
    fs::create_dir(&editor.file).unwrap();
    let error = editor.write("s", "lost?").await.unwrap_err();
    assert!(error.message.contains("a directory"), "{error}");
    assert_eq!(editor.buffer_text(), "lost?");
    assert!(editor.overlay.is_unsaved(&editor.file));
}

#[tokio::test]
async fn newer_user_edits_are_not_overwritten() {
    for overlay in [MemoryBuffers::new(), MemoryBuffers::with_disk_writes()] {
        let editor = OverlayFixture::new(overlay);
        assert_eq!(editor.read("s").await, "inside");
        editor.overlay.edit(&editor.file, "typed");
        let error = editor.write("s", "written").await.unwrap_err();
        assert_eq!(error.code, Error::INTERNAL_ERROR);
        assert!(error.message.contains("read it again"), "{error}");
        assert_eq!(
            (&*editor.buffer_text(), &*editor.read_from_disk()),
            ("typed", "inside")
        );
        // Also if the user has saved the buffer in the meantime.
        fs::write(&editor.file, "typed").unwrap();
        editor.overlay.mark_saved(&editor.file);
        editor.write("s", "written").await.unwrap_err();
        assert_eq!(editor.buffer_text(), "typed");
        // The agent reads the file again. Reading a part is enough.
        let request = ReadTextFileRequest::new("s", editor.file.to_str().unwrap());
        with_timeout(editor.files.read(&request.line(1_u32).limit(1_u32)))
            .await
            .unwrap();
        editor.write("s", "written").await.unwrap();
        assert_eq!(editor.buffer_text(), "written");
        // Text that was typed and removed again is not a change.
        editor.overlay.edit(&editor.file, "typed");
        editor.overlay.edit(&editor.file, "written");
        editor.write("s", "in the end").await.unwrap();
    }
}

#[tokio::test]
async fn unseen_unsaved_changes_are_not_overwritten() {
    let editor = OverlayFixture::new(MemoryBuffers::new());
    editor.overlay.edit(&editor.file, "typed");
    // It does not help that another session has read it.
    assert_eq!(editor.read("other").await, "typed");
    editor.write("s", "written").await.unwrap_err();
    assert_eq!(editor.buffer_text(), "typed");
    editor.write("other", "written").await.unwrap();
    assert_eq!(editor.buffer_text(), "written");
    // A file that was closed and opened again has another text.
    editor.overlay.close(&editor.file);
    assert_eq!(editor.read("other").await, "inside");
    editor.overlay.open(&editor.file, "inside");
    editor.overlay.edit(&editor.file, "typed again");
    editor.write("other", "written").await.unwrap_err();
    assert_eq!(editor.buffer_text(), "typed again");
}

#[tokio::test]
async fn two_paths_to_one_file_share_a_buffer() {
    let editor = OverlayFixture::new(MemoryBuffers::new());
    let root = &editor.scene.root;
    symlink("file", root.join("link")).unwrap();
    symlink(root, root.join("sub/around")).unwrap();
    let names = [
        "link",
        "sub/../file",
        "sub/around/file",
        "sub/around/sub/around/link",
    ];
    for name in names {
        let path = root.join(name);
        editor.overlay.edit(&editor.file, format!("typed, {name}"));
        let read = with_timeout(editor.files.read_text(&path, None, None))
            .await
            .unwrap();
        assert_eq!(read, format!("typed, {name}"));
        with_timeout(editor.files.write_text(&path, name))
            .await
            .unwrap();
        assert_eq!(editor.buffer_text(), name);
    }
    assert_eq!(editor.read_from_disk(), "inside");
    // The file is opened by its other name.
    editor.overlay.close(&editor.file);
    editor.overlay.open(&root.join("link"), "by the link");
    assert_eq!(editor.read("s").await, "by the link");
}

/// Buffers that record every path they are asked about.
#[derive(Clone, Default)]
struct RecordingBuffers(Arc<Mutex<Vec<PathBuf>>>);

impl Buffers for RecordingBuffers {
    async fn read(&self, file: &Path) -> Option<Arc<str>> {
        self.0.lock().unwrap().push(file.to_owned());
        Some("a buffer".into())
    }

    async fn write(&self, change: BufferChange) -> Result<BufferWrite, BufferWriteError> {
        self.0.lock().unwrap().push(change.file.clone());
        Ok(BufferWrite::Buffer(change.text))
    }
}

#[tokio::test]
async fn buffer_outside_the_roots_is_not_used() {
    let scene = EscapeScene::new();
    let greedy = RecordingBuffers::default();
    let files = Files::new([scene.root.clone()])
        .unwrap()
        .with_buffers(greedy.clone());
    for attempt in scene.escape_attempts() {
        // A FIFO, or a name that does not exist yet, can also be open.
        let read = with_timeout(files.read_text(&attempt.path, None, None)).await;
        let written = with_timeout(files.write_text(&attempt.path, "changed")).await;
        let asked = std::mem::take(&mut *greedy.0.lock().unwrap());
        for file in &asked {
            let real = file.canonicalize().unwrap_or_else(|_| file.clone());
            assert!(
                real.starts_with(&scene.root),
                "{:?}: {real:?}",
                attempt.path
            );
        }
        assert_eq!(
            (read.is_ok(), written.is_ok()),
            (!asked.is_empty(), !asked.is_empty())
        );
    }
    scene.assert_untouched(&"buffers");
}

/// An editor that rejects every write.
struct RefusingBuffers;

impl Buffers for RefusingBuffers {
    async fn read(&self, _: &Path) -> Option<Arc<str>> {
        Some("shown".into())
    }

    async fn write(&self, change: BufferChange) -> Result<BufferWrite, BufferWriteError> {
        let basis = change.freshness("shown");
        Err(BufferWriteError::Other(format!(
            "not now ({basis:?}; {:?})",
            change.freshness("other")
        )))
    }
}

#[tokio::test]
async fn editor_gets_the_base_of_a_write_and_can_reject_it() {
    let scene = EscapeScene::new();
    let files = Files::new([scene.root.clone()])
        .unwrap()
        .with_buffers(RefusingBuffers);
    let file = scene.root.join("file");
    let error = with_timeout(files.write_text(&file, "x"))
        .await
        .unwrap_err();
    assert!(
        error.message.contains("not now (Unknown; Unknown)"),
        "{error}"
    );
    with_timeout(files.read_text(&file, None, None))
        .await
        .unwrap();
    let error = with_timeout(files.write_text(&file, "x"))
        .await
        .unwrap_err();
    assert!(
        error.message.contains("not now (Current; Outdated)"),
        "{error}"
    );
    assert_eq!(fs::read_to_string(file).unwrap(), "inside");
    assert_ne!(BufferFreshness::Current, BufferFreshness::Unknown);
}

#[tokio::test]
async fn line_endings_and_byte_order_mark_are_preserved_in_buffers() {
    let editor = OverlayFixture::new(MemoryBuffers::new());
    editor.overlay.open(&editor.file, "\u{FEFF}a\r\nb\r\n");
    editor.read("s").await;
    editor.write("s", "1\n2\n").await.unwrap();
    assert_eq!(editor.buffer_text(), "\u{FEFF}1\r\n2\r\n");
    // The agent knows the text, although it is not exactly what it wrote.
    editor.write("s", "3\n").await.unwrap();
    assert_eq!(editor.buffer_text(), "\u{FEFF}3\r\n");
}

struct OverlayPrompter;

impl Prompter for OverlayPrompter {
    async fn ask(&self, _: &PermissionRequest) -> Option<PermissionOptionId> {
        None
    }
}

#[tokio::test]
async fn host_serves_buffers() {
    let editor = OverlayFixture::new(MemoryBuffers::new());
    editor.overlay.edit(&editor.file, "typed");
    let host = Host::new(Policy::All, OverlayPrompter, [editor.scene.root.clone()]).unwrap();
    let host = host.with_buffers(editor.overlay.clone());
    let host = OneSession::new(host, &ThreadHandle::new());
    let path = editor.file.to_str().unwrap();
    let read = host.read(ReadTextFileRequest::new("s", path));
    assert_eq!(with_timeout(read).await.unwrap().content, "typed");
    let write = host.write(WriteTextFileRequest::new("s", path, "written"));
    with_timeout(write).await.unwrap();
    assert_eq!(
        (&*editor.buffer_text(), &*editor.read_from_disk()),
        ("written", "inside")
    );
}
