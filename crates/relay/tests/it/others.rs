//! Upstreams that are not ours: nginx, and a small API in Python with a route file.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use http::Method;
use net::client::Target;

use crate::stage::Stage;

struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

async fn listens(port: u16) {
    let look = async {
        while tokio::net::TcpStream::connect(("127.0.0.1", port)).await.is_err() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(crate::stage::PATIENCE, look).await.unwrap();
}

fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

const API: &str = r#"
import json, sys
from http.server import BaseHTTPRequestHandler, HTTPServer
notes = []
class Api(BaseHTTPRequestHandler):
    def answer(self, status, body):
        text = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)
    def do_GET(self):
        self.answer(200 if self.path == "/notes" else 404, notes)
    def do_POST(self):
        notes.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.answer(201, {"count": len(notes)})
    def log_message(self, *_): pass
HTTPServer(("127.0.0.1", int(sys.argv[1])), Api).serve_forever()
"#;

const ROUTES: &str = r#"
[[route]]
method = "POST"
path = "/notes"
class = "append"

[[route]]
method = "PUT"
path = "/notes/{id}"
class = "replace"
order = "note:{id}"
"#;

fn python(port: u16) -> Server {
    let child = Command::new("python3").args(["-c", API, &port.to_string()]).stdout(Stdio::null()).spawn();
    Server(child.expect("python3 is installed"))
}

#[tokio::test]
async fn a_plain_python_api_gets_a_queued_write_through_ten_lines_of_routes() {
    let port = free_port();
    let stage = Stage::with(|config| {
        config.upstream = Target::of_url(&format!("http://127.0.0.1:{port}")).unwrap();
        config.routes = relay::parse_routes(ROUTES).unwrap();
        config.answer_timeout = Duration::from_secs(5);
    })
    .await;
    let told = stage.post("/notes", "one", r#"{"note":"while away"}"#).await;
    assert_eq!((told.status, told.body["outcome"].as_str()), (202, Some("not_sent")));
    let _api = python(port);
    listens(port).await;
    stage.drained().await;
    stage.until("one", "done").await;
    let notes = stage.call(Method::GET, "/notes", &[], "").await;
    assert_eq!(notes.body, serde_json::json!([{"note": "while away"}]));
}

#[tokio::test]
async fn nginx_as_upstream_is_passed_through_and_its_gateway_error_is_an_outage() {
    let folder = tempfile::tempdir().unwrap();
    let (front, back) = (free_port(), free_port());
    let path = |name: &str| folder.path().join(name).display().to_string();
    let config = format!(
        "daemon off; master_process off; pid {}; error_log {}; worker_processes 1; events {{}}\n\
         http {{ access_log off; client_body_temp_path {}; proxy_temp_path {}; fastcgi_temp_path {}; uwsgi_temp_path {}; \
         scgi_temp_path {}; server {{ listen 127.0.0.1:{front}; location / {{ proxy_pass http://127.0.0.1:{back}; }} }} }}",
        path("pid"),
        path("errors"),
        path("a"),
        path("b"),
        path("c"),
        path("d"),
        path("e"),
    );
    std::fs::write(path("nginx.conf"), config).unwrap();
    let nginx = Command::new("nginx").args(["-c", &path("nginx.conf"), "-e", &path("errors")]).spawn();
    let _nginx = Server(nginx.expect("nginx is installed"));
    listens(front).await;
    let stage = Stage::with(|config| {
        config.upstream = Target::of_url(&format!("http://127.0.0.1:{front}")).unwrap();
        config.routes = relay::parse_routes(ROUTES).unwrap();
        config.answer_timeout = Duration::from_secs(5);
    })
    .await;
    let told = stage.post("/notes", "one", r#"{"note":1}"#).await;
    assert_eq!((told.status, told.body["outcome"].as_str()), (202, Some("unknown")), "502 of the proxy");
    let _api = python(back);
    listens(back).await;
    stage.drained().await;
    stage.until("one", "done").await;
    let live = stage.post("/notes", "two", r#"{"note":2}"#).await;
    assert_eq!((live.status, live.header("statehub-relay")), (201, "forwarded"));
}
