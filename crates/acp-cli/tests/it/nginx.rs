//! Tests of `acp serve` behind nginx, with the configuration from `docs/remote.md`.

use std::path::PathBuf;
use std::process::Command;

use acp_server::self_signed_identity;

use crate::common::TestProject;
use crate::connect::{closed_port, to_http_url, token_file};
use crate::serve::Server;

/// The environment variable that makes these tests fail if nginx is not installed.
const REQUIRE_VARIABLE: &str = "ACP_REQUIRE_NGINX";

/// A running nginx that acts as a reverse proxy with TLS. Stops when dropped.
struct Nginx {
    port: u16,
    /// The fingerprint of nginx's certificate.
    pin: String,
    pid_file: PathBuf,
}

impl Nginx {
    /// Starts nginx in front of a server. Returns `None` if nginx is not installed.
    fn start(project: &TestProject, server: &Server) -> Option<Self> {
        // Debian has it where only root looks.
        let program = ["nginx", "/usr/sbin/nginx"].into_iter().find(|program| {
            let version = Command::new(program).arg("-v").output();
            version.is_ok_and(|version| version.status.success())
        });
        let Some(program) = program else {
            assert!(
                std::env::var_os(REQUIRE_VARIABLE).is_none(),
                "{REQUIRE_VARIABLE} is set, and there is no nginx"
            );
            eprintln!("skipped: there is no nginx");
            return None;
        };
        let directory = project.path_outside("nginx");
        let certificate = directory.join("agents.pem");
        let names = ["localhost".to_owned()];
        let pin = self_signed_identity(&certificate, &names)
            .unwrap()
            .fingerprint_text();
        let port = closed_port();
        let certificate = certificate.to_str().unwrap();
        let documented = documented_configuration()
            .replace("listen 443", &format!("listen 127.0.0.1:{port}"))
            .replace("/etc/ssl/agents.pem", certificate)
            .replace("/etc/ssl/agents.key", certificate)
            .replace("127.0.0.1:7180", server.address());
        let file = directory.join("nginx.conf");
        let at = directory.display();
        let configuration = format!(
            "pid {at}/pid;\nerror_log {at}/error.log;\nevents {{}}\nhttp {{\naccess_log off;\n\
             client_body_temp_path {at}/body;\nproxy_temp_path {at}/proxy;\n\
             fastcgi_temp_path {at}/fastcgi;\nuwsgi_temp_path {at}/uwsgi;\n\
             scgi_temp_path {at}/scgi;\n{documented}}}\n"
        );
        std::fs::write(&file, configuration).unwrap();
        // It returns when it listens, and goes on in the background.
        let started = Command::new(program)
            .args(["-e", &format!("{at}/error.log"), "-c"])
            .arg(&file)
            .output()
            .unwrap();
        let stderr = String::from_utf8_lossy(&started.stderr);
        assert!(started.status.success(), "{stderr}");
        Some(Self {
            port,
            pin,
            pid_file: directory.join("pid"),
        })
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        let pid = std::fs::read_to_string(&self.pid_file).unwrap_or_default();
        let pid = pid.trim().parse().ok();
        if let Some(pid) = pid.and_then(rustix::process::Pid::from_raw) {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        }
    }
}

/// Returns the configuration that `docs/remote.md` recommends.
fn documented_configuration() -> String {
    let page = std::fs::read_to_string(
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/remote.md"),
    )
    .unwrap();
    let (_, after) = page.split_once("```nginx\n").unwrap();
    let (block, _) = after.split_once("```").unwrap();
    block.to_owned()
}

#[test]
fn a_turn_passes_nginx_over_each_transport() {
    let project = TestProject::new();
    let server = Server::start(&project, &[]);
    let Some(nginx) = Nginx::start(&project, &server) else {
        return;
    };
    let token = token_file(&project, server.token().expose());
    // `agents.example.com` of the page does not resolve here. `localhost` needs no `--host`.
    let web_socket = format!("wss://localhost:{}/acp", nginx.port);
    // Over https, nginx negotiates HTTP/2.
    for url in [web_socket.clone(), to_http_url(&web_socket)] {
        project.write_file("notes.txt", "first\nsecond\n");
        let remote = ["--url", &url, "--token-file", &token, "--pin", &nginx.pin];
        let run = |prompt: &str| {
            let args = [&["--allow", "all", prompt], &remote[..]].concat();
            project.run(&args).expect_code(0)
        };
        run("/edit notes.txt\nsecond\n===\nchanged");
        assert_eq!(project.read_file("notes.txt"), "first\nchanged\n", "{url}");
        run("/run echo from the agent").expect_stdout(&["from the agent"]);
        project
            .run(&["/help", "--url", &url, "--token-file", &token])
            .expect_code(3)
            .expect_stderr("if you know the certificate's fingerprint, use --pin");
    }
}
