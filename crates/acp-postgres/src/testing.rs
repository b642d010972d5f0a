//! A PostgreSQL server for tests, which ends with the process. Every function panics if something goes wrong.

// Made for tests, which fail if anything goes wrong here.
#![allow(clippy::unwrap_used, clippy::missing_panics_doc)]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// The variable that says that no test may be skipped because there is no PostgreSQL.
const REQUIRED: &str = "ACP_REQUIRE_POSTGRES";

/// Where Debian installs the programs of PostgreSQL.
const DEBIAN_DIRECTORY: &str = "/usr/lib/postgresql";

/// A server in a directory of its own, which listens on a Unix-domain socket there.
#[derive(Debug)]
pub struct TestPostgres {
    programs: PathBuf,
    directory: tempfile::TempDir,
    server: Mutex<Option<Child>>,
    databases: Mutex<u32>,
    port: String,
}

impl TestPostgres {
    /// Returns the server that all tests of this process share. Starts it first. Returns `None` if there is no PostgreSQL on
    /// this machine, and says why the test is skipped.
    #[must_use]
    pub fn shared() -> Option<&'static Self> {
        static SHARED: OnceLock<Option<TestPostgres>> = OnceLock::new();
        let shared = SHARED.get_or_init(|| Self::start("-c fsync=off"));
        shared.as_ref()
    }

    /// Starts a server with these options.
    #[must_use]
    pub fn start(options: &str) -> Option<Self> {
        let Some(programs) = find_programs() else {
            assert!(
                std::env::var_os(REQUIRED).is_none(),
                "{REQUIRED} is set, but there is no PostgreSQL"
            );
            eprintln!("skipped: no PostgreSQL (initdb and postgres) on this machine");
            return None;
        };
        let port = options
            .split("-c ")
            .find_map(|option| option.strip_prefix("port="));
        let port = port.unwrap_or("5432");
        let directory = tempfile::Builder::new().prefix("acp-pg").tempdir().unwrap();
        let server = Self {
            programs,
            directory,
            server: Mutex::default(),
            databases: Mutex::default(),
            port: port.trim().to_owned(),
        };
        let owned = Command::new("chown")
            .arg("postgres")
            .arg(server.directory.path())
            .stderr(Stdio::null())
            .status();
        assert!(!is_root() || owned.unwrap().success(), "no user postgres");
        let data = server.data();
        let initialized = server
            .as_postgres("initdb")
            .args(["--auth=trust", "--username=postgres", "--encoding=UTF8"])
            .arg("--no-sync")
            .arg(&data)
            .output()
            .unwrap();
        assert!(initialized.status.success(), "initdb: {initialized:?}");
        let configuration = data.join("postgresql.auto.conf");
        let mut settings = vec!["listen_addresses=''"];
        settings.extend(options.split("-c ").map(str::trim));
        std::fs::write(configuration, settings.join("\n")).unwrap();
        // Only matters if the options let it listen on a network.
        let access = std::fs::OpenOptions::new()
            .append(true)
            .open(data.join("pg_hba.conf"));
        writeln!(access.unwrap(), "host all all samenet trust").unwrap();
        server.run();
        Some(server)
    }

    fn data(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    /// Returns a command that runs one of PostgreSQL's programs. They refuse to run as root.
    fn as_postgres(&self, program: &str) -> Command {
        let program = self.programs.join(program);
        let mut command = match is_root() {
            true => {
                let mut command = Command::new("setpriv");
                command.args(["--reuid=postgres", "--regid=postgres", "--clear-groups"]);
                command.arg(program);
                command
            }
            false => Command::new(program),
        };
        command.current_dir(self.directory.path());
        command
    }

    /// Starts the server, and waits until it accepts connections.
    pub fn run(&self) {
        let mut server = self.lock();
        assert!(server.is_none(), "the server is running");
        // The shell waits for a line. Without one, this process has ended, however that happened.
        let script = r#"
            directory=$1; shift
            "$@" & server=$!
            read -r line; kill -INT $server; wait $server
            [ -n "$line" ] || rm -rf "$directory"
        "#;
        let postgres = self.as_postgres("postgres");
        let mut command = Command::new("sh");
        command
            .args(["-c", script, "sh"])
            .arg(self.directory.path());
        command
            .arg(postgres.get_program())
            .args(postgres.get_args());
        command
            .arg("-c")
            .arg(format!(
                "unix_socket_directories={}",
                self.directory.path().display()
            ))
            .arg("-D")
            .arg(self.data())
            .current_dir(self.directory.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        *server = Some(command.spawn().unwrap());
        drop(server);
        let begun = Instant::now();
        while !self.psql("postgres", "select 1") {
            assert!(
                begun.elapsed() < Duration::from_secs(30),
                "PostgreSQL does not start"
            );
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Ends the server at once, as if the machine had crashed.
    pub fn crash(&self) {
        let pid = std::fs::read_to_string(self.data().join("postmaster.pid")).unwrap();
        let pid = pid.lines().next().unwrap().to_owned();
        let killed = Command::new("kill").args(["-QUIT", &pid]).status();
        assert!(killed.unwrap().success());
        self.stop();
    }

    /// Ends the server.
    pub fn stop(&self) {
        if let Some(mut server) = self.lock().take() {
            if let Some(mut stdin) = server.stdin.take() {
                let _ = stdin.write_all(b"stop\n");
            }
            let _ = server.wait();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Child>> {
        self.server.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn psql(&self, database: &str, sql: &str) -> bool {
        let mut command = Command::new(self.programs.join("psql"));
        command
            .args(["-qX", "-U", "postgres", "-d", database, "-c", sql])
            .args(["-p", &self.port, "-h"])
            .arg(self.directory.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    }

    /// Runs statements in a database that [`new_database`](Self::new_database) has created.
    ///
    /// # Panics
    /// They fail.
    pub fn execute(&self, url: &str, sql: &str) {
        let (_, rest) = url.split_once("@/").unwrap_or_default();
        let name = rest.split('?').next().unwrap_or_default();
        assert!(self.psql(name, sql), "{sql}");
    }

    /// Creates an empty database, and returns its URL.
    #[must_use]
    pub fn new_database(&self) -> String {
        let number = {
            let mut databases = self
                .databases
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            *databases += 1;
            *databases
        };
        let name = format!("test{number}");
        assert!(self.psql("postgres", &format!("create database {name}")));
        let directory = self.directory.path().display().to_string();
        format!("postgres://postgres@/{name}?host={directory}")
    }
}

impl Drop for TestPostgres {
    fn drop(&mut self) {
        self.stop();
    }
}

fn is_root() -> bool {
    #[cfg(unix)]
    return rustix::process::geteuid().is_root();
    #[cfg(not(unix))]
    false
}

/// Returns the directory with PostgreSQL's programs.
fn find_programs() -> Option<PathBuf> {
    let has_programs = |directory: &Path| {
        let programs = ["initdb", "postgres", "psql"];
        programs
            .iter()
            .all(|program| directory.join(program).exists())
    };
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut directories: Vec<PathBuf> = std::env::split_paths(&path).collect();
    if let Ok(versions) = std::fs::read_dir(DEBIAN_DIRECTORY) {
        directories.extend(versions.flatten().map(|version| version.path().join("bin")));
    }
    directories
        .into_iter()
        .find(|directory| has_programs(directory))
}
