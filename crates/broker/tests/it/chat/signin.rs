//! Browsers: sign-in, cookies, tickets.

use http::{Method, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use net::Secret;
use net::client::ClientError;
use net::socket::Bounds;
use serde_json::{Value, json};
use wire::auth::{AUDIENCE_LINK, AUDIENCE_SUBSCRIBE};

use super::stage::{Stage, Subscriber, on_both_stores};
use crate::node::accepted;

on_both_stores! {
    a_key_signs_one_browser_in_and_the_cookie_is_its_session
    a_browser_writes_only_from_the_doors_own_page
    a_ticket_opens_one_socket
    a_nodes_ticket_lets_its_person_follow_and_leaves_its_link
    a_session_that_ends_takes_its_tickets_and_requests_along
}

/// A browser, as far as cookies and origins go.
struct Browser {
    url: String,
    cookie: Option<String>,
}

impl Browser {
    fn at(stage: &Stage) -> Self {
        Self { url: stage.scene.url(), cookie: None }
    }

    async fn ask(
        &mut self,
        method: Method,
        path: &str,
        body: Option<Value>,
        origin: Option<&str>,
    ) -> (u16, Value) {
        let mut request = http::Request::builder().method(method).uri(format!("{}{path}", self.url));
        if let Some(cookie) = &self.cookie {
            request = request.header("cookie", cookie);
        }
        if let Some(origin) = origin {
            request = request.header("origin", origin);
        }
        let bytes = body.map_or_else(Vec::new, |body| body.to_string().into_bytes());
        if !bytes.is_empty() {
            request = request.header("content-type", "application/json");
        }
        let client: Client<_, Full<bytes::Bytes>> = Client::builder(TokioExecutor::new()).build_http();
        let answer = client.request(request.body(Full::from(bytes)).unwrap()).await.unwrap();
        if let Some(line) = answer.headers().get("set-cookie") {
            let line = line.to_str().unwrap();
            assert!(line.contains("HttpOnly") && line.contains("SameSite=Strict") && line.contains("Path=/"));
            assert!(!line.contains("Secure"), "this door is plain");
            self.cookie = Some(line.split(';').next().unwrap().to_owned());
        }
        let status: StatusCode = answer.status();
        let bytes = answer.into_body().collect().await.unwrap().to_bytes();
        (status.as_u16(), serde_json::from_slice(&bytes).unwrap_or(Value::Null))
    }

    async fn own(&mut self, method: Method, path: &str, body: Option<Value>) -> (u16, Value) {
        let origin = self.url.clone();
        self.ask(method, path, body, Some(&origin)).await
    }

    async fn sign_in(&mut self, stage: &Stage, name: &str) {
        let key = stage.scene.broker.sign_in(&name.parse().unwrap()).await.unwrap().key;
        assert_eq!(self.own(Method::POST, "/v1/session", Some(json!({"key": key}))).await.0, 200);
    }
}

async fn a_key_signs_one_browser_in_and_the_cookie_is_its_session(stage: Stage) {
    stage.owner("jane").await;
    let key = stage.scene.broker.sign_in(&"jane".parse().unwrap()).await.unwrap().key;
    let mut browser = Browser::at(&stage);
    assert_eq!(browser.own(Method::GET, "/v1/session", None).await.0, 401);
    let (status, answer) = browser.own(Method::POST, "/v1/session", Some(json!({"key": key}))).await;
    assert_eq!((status, &answer["member"]["name"], &answer["role"]), (200, &"jane".into(), &"owner".into()));
    let (status, who) = browser.own(Method::GET, "/v1/session", None).await;
    assert_eq!((status, &who["member"]), (200, &answer["member"]));
    let (status, list) = browser.own(Method::GET, "/v1/conversations", None).await;
    assert_eq!((status, list), (200, json!({"conversations": []})));
    for used in [key.as_str(), "nonsense", ""] {
        let (status, refused) =
            Browser::at(&stage).own(Method::POST, "/v1/session", Some(json!({"key": used}))).await;
        assert_eq!((status, &refused["error"]), (401, &"sign_in_refused".into()));
    }
    assert_eq!(browser.own(Method::DELETE, "/v1/session", None).await.0, 204);
    assert_eq!(browser.own(Method::GET, "/v1/conversations", None).await.0, 401);
}

async fn a_browser_writes_only_from_the_doors_own_page(stage: Stage) {
    stage.owner("jane").await;
    let mut browser = Browser::at(&stage);
    browser.sign_in(&stage, "jane").await;
    let post = || Some(json!({"to": "#t", "body": "hi"}));
    let path = "/v1/meshes/home/messages";
    for foreign in [None, Some("http://evil.example"), Some("null")] {
        let (status, refused) = browser.ask(Method::POST, path, post(), foreign).await;
        assert_eq!((status, &refused["error"]), (403, &"origin_refused".into()), "{foreign:?}");
    }
    assert_eq!(browser.own(Method::POST, path, post()).await.0, 201);
    assert_eq!(browser.ask(Method::GET, "/v1/conversations", None, None).await.0, 200);
}

async fn a_ticket_opens_one_socket(stage: Stage) {
    stage.owner("jane").await;
    let mut browser = Browser::at(&stage);
    browser.sign_in(&stage, "jane").await;
    let (status, answer) = browser.own(Method::POST, "/v1/tickets", None).await;
    assert_eq!(status, 200);
    let ticket = Secret::from(answer["ticket"].as_str().unwrap().to_owned());
    // At the other broker, where there is one: tickets are the mesh's.
    let client = stage.other.as_ref().unwrap_or(&stage.scene).client();
    let open = async || client.upgrade("/v1/subscribe", &ticket, Bounds::default()).await;
    let mut follower = Subscriber::over(open().await.unwrap()).await;
    assert_eq!(follower.barrier().await.len(), 0);
    let again = open().await.map(|_| ()).unwrap_err().to_string();
    assert!(again.contains("invalid_ticket"), "{again}");
    let bare = stage.scene.client().upgrade_as_bearer("/v1/subscribe", Bounds::default()).await;
    assert!(bare.map(|_| ()).unwrap_err().to_string().contains("invalid_ticket"));
}

async fn a_session_that_ends_takes_its_tickets_and_requests_along(stage: Stage) {
    stage.owner("jane").await;
    let mut browser = Browser::at(&stage);
    browser.sign_in(&stage, "jane").await;
    let (_, answer) = browser.own(Method::POST, "/v1/tickets", None).await;
    let ticket = Secret::from(answer["ticket"].as_str().unwrap().to_owned());
    let cookie = browser.cookie.clone();
    assert_eq!(browser.own(Method::DELETE, "/v1/session", None).await.0, 204);
    let refused = stage.scene.client().upgrade("/v1/subscribe", &ticket, Bounds::default()).await;
    assert!(refused.map(|_| ()).unwrap_err().to_string().contains("invalid_ticket"));
    browser.cookie = cookie;
    assert_eq!(browser.own(Method::GET, "/v1/session", None).await.0, 401);
}

async fn a_nodes_ticket_lets_its_person_follow_and_leaves_its_link(stage: Stage) {
    let node = stage.scene.joined("lab").await;
    let mut link = node.link().await;
    let jane = stage.member("jane").await;
    let log = jane.fill("@lab", 0, 2).await;
    let client = stage.scene.client();
    let open = async |path: &str, ticket: &Secret| client.upgrade(path, ticket, Bounds::default()).await;
    let code = |refused: ClientError| refused.code().map(|code| code.code());
    let ticket = node.ticket_for(AUDIENCE_SUBSCRIBE).await.unwrap();
    let elsewhere = open("/v1/link", &ticket).await.err().unwrap();
    assert_eq!(code(elsewhere), Some("invalid_ticket"), "one surface");
    let mut follower = Subscriber::over(open("/v1/subscribe", &ticket).await.unwrap()).await;
    let again = open("/v1/subscribe", &ticket).await.err().unwrap();
    assert_eq!(code(again), Some("ticket_already_used"));
    let of_a_link = node.ticket_for(AUDIENCE_LINK).await.unwrap();
    assert_eq!(code(open("/v1/subscribe", &of_a_link).await.err().unwrap()), Some("invalid_ticket"));
    follower.subscribe(&log, "", "s").await;
    assert_eq!(follower.caught_up().await.0, ["0", "1"]);
    jane.fill("@lab", 2, 1).await;
    assert_eq!(follower.texts(1).await, ["2"]);
    accepted(link.send_one("@jane", "still", "the link is still the node's").await);
}
