//! WebSockets: hostile frames, stalled readers, silence, and the end of a door.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use net::respond::Refusal;
use net::serve::{Bounds, Ended as DoorEnded};
use net::socket::{self, Close, Ended, SendError, Socket, TrySendError, Upgrade};
use tokio::sync::{Mutex, mpsc};

use crate::frames::{BINARY, CLOSE, FIN, Frame, PING, PONG, TEXT, frame, head, upgrade_head, upgraded};
use crate::scene::{Scene, parsed};

const FRAME_MAX: usize = 1 << 20;

/// A door whose sockets are handed to the test.
async fn door(bounds: socket::Bounds, door: Bounds) -> (Scene, mpsc::Receiver<Socket>) {
    let (opened, sockets) = mpsc::channel(8);
    let router = Router::new().route(
        "/socket",
        get(async move |upgrade: Upgrade| -> Result<_, Refusal> {
            upgrade.ticket()?;
            let stopping = upgrade.connection().stopping().clone();
            Ok(upgrade.with_bounds(bounds).accept(async move |socket| {
                let _ = opened.send(socket).await;
                stopping.cancelled().await;
            }))
        }),
    );
    (Scene::open(router, door).await, sockets)
}

async fn plain_door() -> (Scene, mpsc::Receiver<Socket>) {
    door(socket::Bounds::default(), Bounds::default()).await
}

#[tokio::test]
async fn an_upgrade_without_ticket_protocol_or_key_is_refused_before_101() {
    let (scene, _sockets) = plain_door().await;
    let key = "dGhlIHNhbXBsZSBub25jZQ==";
    for (protocols, key, status, error) in [
        ("postrider.v1", key, 401, "invalid_ticket"),
        ("ticket.T", key, 400, "invalid_request"),
        ("chat, ticket.T", key, 400, "invalid_request"),
        ("postrider.v1, ticket.T", "short", 400, "invalid_request"),
        ("postrider.v1, ticket.T", "", 400, "invalid_request"),
    ] {
        let mut line = scene.line().await;
        line.say(&upgrade_head(&scene, protocols, key)).await;
        let answer = line.until("}").await;
        let (found, body) = parsed(&answer);
        assert_eq!((found, &body["error"]), (status, &error.into()), "{protocols} {key}");
    }
    let plain = parsed(&scene.exchange(&scene.head("GET /socket", &[])).await);
    assert_eq!((plain.0, &plain.1["error"]), (400, &"invalid_request".into()));
}

#[tokio::test]
async fn what_the_protocol_forbids_ends_the_socket_with_its_code() {
    let half = FRAME_MAX / 2 + 1;
    let in_parts = [frame(TEXT, &vec![b'x'; half]), frame(FIN, &vec![b'x'; half])].concat();
    for (what, bytes, code) in [
        ("an unmasked frame", [head(FIN | TEXT, 2, 0), b"hi".to_vec()].concat(), 1002),
        ("a reserved bit", frame(FIN | 0x40 | TEXT, b"hi"), 1002),
        ("an unknown opcode", frame(FIN | 0x3, b"hi"), 1002),
        ("a continuation of nothing", frame(FIN, b"hi"), 1002),
        ("a text inside a text", [frame(TEXT, b"a"), frame(FIN | TEXT, b"b")].concat(), 1002),
        ("a ping in parts", frame(PING, b""), 1002),
        ("a ping of 126 bytes", frame(FIN | PING, &[0; 126]), 1002),
        ("a binary frame", frame(FIN | BINARY, b"hi"), 1003),
        ("a text that is no text", frame(FIN | TEXT, b"\xff"), 1007),
        ("a text that is no text, in parts", [frame(TEXT, b"\xc3"), frame(FIN, b"\x28")].concat(), 1007),
        ("a frame over the bound", head(FIN | TEXT, FRAME_MAX as u64 + 1, 0x80), 1009),
        ("a frame of 2^63 bytes", head(FIN | TEXT, 1 << 63, 0x80), 1009),
        ("a text over the bound, in parts", in_parts, 1009),
    ] {
        let (scene, mut sockets) = plain_door().await;
        let mut line = upgraded(&scene).await;
        let (mut reader, _writer) = sockets.recv().await.unwrap().split();
        // The mask's bytes, for those that are only a head.
        line.push(&[bytes, vec![0; 4]].concat()).await;
        let ended = reader.next().await.unwrap_err();
        assert!(matches!(&ended, Ended::Refused(close) if close.code == code), "{what}: {ended}");
        assert_eq!(line.frame().await.close_code(), code, "{what}");
    }
}

#[tokio::test]
async fn a_text_may_come_in_many_parts_with_pings_between() {
    let (scene, mut sockets) = plain_door().await;
    let mut line = upgraded(&scene).await;
    let (mut reader, _writer) = sockets.recv().await.unwrap().split();
    let mut parts = frame(TEXT, b"x");
    for _ in 0..125 {
        parts.extend(frame(0, b"x"));
        parts.extend(frame(FIN | PING, b"p"));
    }
    parts.extend(frame(FIN, b"x"));
    line.push(&parts).await;
    assert_eq!(reader.next().await.unwrap().as_str(), "x".repeat(127));
    assert_eq!(line.frame().await, Frame { opcode: PONG, payload: b"p".to_vec() });
}

#[tokio::test]
async fn a_flood_of_pings_is_read_and_its_answers_are_not_kept_for_a_client_that_reads_none() {
    let (scene, mut sockets) = plain_door().await;
    let mut line = upgraded(&scene).await;
    let (mut reader, writer) = sockets.recv().await.unwrap().split();
    let pings = 400_000;
    let flood: Vec<u8> = frame(FIN | PING, &[b'p'; 125]).repeat(1_000);
    for _ in 0..pings / 1_000 {
        tokio::select! {
            () = line.push(&flood) => {}
            _ = reader.next() => panic!("nothing but pings was said"),
        }
    }
    line.push(&frame(FIN | TEXT, b"after")).await;
    assert_eq!(reader.next().await.unwrap().as_str(), "after");
    // What was kept comes now, before the answer to the question.
    writer.send("end").await.unwrap();
    let mut kept = 0;
    while line.frame().await.opcode == PONG {
        kept += 1;
    }
    assert!(kept < pings / 2, "{kept} of {pings} answers were kept");
}

#[tokio::test]
async fn a_close_is_answered_and_told_with_its_code() {
    let (scene, mut sockets) = plain_door().await;
    let mut line = upgraded(&scene).await;
    let (mut reader, writer) = sockets.recv().await.unwrap().split();
    line.push(&frame(FIN | CLOSE, b"\x0f\xa3bye")).await;
    let ended = reader.next().await.unwrap_err();
    assert!(matches!(&ended, Ended::Closed(close) if close.code == 4003 && close.reason == "bye"), "{ended}");
    assert_eq!(line.frame().await.close_code(), 4003);
    writer.closed().await;
    assert!(writer.send("late").await.is_err());
}

#[tokio::test]
async fn what_waits_goes_before_the_close() {
    let (scene, mut sockets) = plain_door().await;
    let mut line = upgraded(&scene).await;
    let (_reader, writer) = sockets.recv().await.unwrap().split();
    for n in 0..100 {
        writer.try_send(n.to_string()).unwrap();
    }
    writer.close(Close::new(4010, "feature missing"));
    for n in 0..100 {
        assert_eq!(line.frame().await, Frame { opcode: TEXT, payload: n.to_string().into_bytes() });
    }
    assert_eq!(line.frame().await.close_code(), 4010);
}

#[tokio::test]
async fn a_reader_that_never_reads_is_stalled_then_cut_while_others_go_on() {
    let stall_timeout = Duration::from_millis(300);
    let (scene, mut sockets) =
        door(socket::Bounds::default(), Bounds { stall_timeout, ..Bounds::default() }).await;
    let _deaf = upgraded(&scene).await;
    let (_deaf_reader, deaf) = sockets.recv().await.unwrap().split();
    let mut awake = upgraded(&scene).await;
    let (_reader, writer) = sockets.recv().await.unwrap().split();

    let pushing = tokio::spawn({
        let deaf = deaf.clone();
        async move {
            let large = "x".repeat(64 * 1024);
            loop {
                // Fills the system's buffers too; then it waits for room, and is told that there will be none.
                if let Err(error) = deaf.send(large.clone()).await {
                    break error;
                }
            }
        }
    });
    let ticking = async {
        while !pushing.is_finished() {
            writer.send("tick").await.unwrap();
            assert_eq!(awake.frame().await.payload, b"tick");
        }
    };
    tokio::time::timeout(Duration::from_secs(60), ticking).await.expect("it is cut");
    assert_eq!(pushing.await.unwrap(), SendError::Gone);
    assert_eq!(deaf.try_send("more"), Err(TrySendError::Gone));
    writer.send("still here").await.unwrap();
    assert_eq!(awake.frame().await.payload, b"still here");
}

#[tokio::test]
async fn a_close_does_not_wait_for_a_reader_that_never_reads() {
    let (scene, mut sockets) = plain_door().await;
    let _deaf = upgraded(&scene).await;
    let (_reader, writer) = sockets.recv().await.unwrap().split();
    let large = "x".repeat(FRAME_MAX);
    while tokio::time::timeout(Duration::from_millis(100), writer.send(large.clone())).await.is_ok() {}
    writer.close(Close::new(4003, "replaced"));
    let half = model::limits::WINDOW_STALL_TIMEOUT / 2;
    tokio::time::timeout(half, writer.closed()).await.expect("long before the stall timeout");
}

#[tokio::test]
async fn what_waits_is_bounded_in_bytes_and_in_frames() {
    let (scene, mut sockets) = plain_door().await;
    let _deaf = upgraded(&scene).await;
    let (_reader, writer) = sockets.recv().await.unwrap().split();
    // Not a step of the writing task happens between these: the test's runtime has one thread and nothing awaits.
    let half = "x".repeat(FRAME_MAX / 2);
    writer.try_send(half.clone()).unwrap();
    writer.try_send(half.clone()).unwrap();
    assert_eq!(writer.try_send("x"), Err(TrySendError::Stalled), "bytes");
    assert_eq!(writer.try_send("x".repeat(FRAME_MAX + 1)), Err(TrySendError::TooLarge));

    let _other = upgraded(&scene).await;
    let (_reader, writer) = sockets.recv().await.unwrap().split();
    for _ in 0..model::limits::SOCKET_FRAMES_MAX {
        writer.try_send("x").unwrap();
    }
    assert_eq!(writer.try_send("x"), Err(TrySendError::Stalled), "frames");
}

#[tokio::test]
async fn both_ends_ping_and_silence_ends_the_socket() {
    let bounds = socket::Bounds {
        ping_every: Duration::from_millis(150),
        silence_max: Duration::from_secs(1),
        ..socket::Bounds::default()
    };
    let (scene, mut sockets) = door(bounds, Bounds::default()).await;
    let mut line = upgraded(&scene).await;
    let (mut reader, _writer) = sockets.recv().await.unwrap().split();
    let start = tokio::time::Instant::now();
    // Eight answered pings take longer than silence may: the answers keep the socket alive.
    let reading = tokio::spawn(async move {
        let ended = reader.next().await.unwrap_err();
        (ended, tokio::time::Instant::now())
    });
    for _ in 0..8 {
        assert_eq!(line.frame().await.opcode, PING);
        line.push(&frame(FIN | PONG, b"")).await;
    }
    let answered_at = start.elapsed();
    let (ended, ended_at) = reading.await.unwrap();
    assert!(matches!(ended, Ended::Silent), "{ended}");
    let silent_for = ended_at - start - answered_at;
    assert!(silent_for >= bounds.silence_max * 9 / 10, "{silent_for:?}");
}

#[tokio::test]
async fn silence_counts_across_reads_that_were_given_up() {
    let bounds = socket::Bounds { silence_max: Duration::from_millis(200), ..socket::Bounds::default() };
    let (scene, mut sockets) = door(bounds, Bounds::default()).await;
    let _mute = upgraded(&scene).await;
    let (mut reader, _writer) = sockets.recv().await.unwrap().split();
    let ended = tokio::time::timeout(Duration::from_secs(30), async {
        loop {
            // A loop that looks at other things every few milliseconds.
            if let Ok(read) = tokio::time::timeout(Duration::from_millis(20), reader.next()).await {
                break read.unwrap_err();
            }
        }
    });
    assert!(matches!(ended.await.expect("noticed"), Ended::Silent));
}

#[tokio::test]
async fn dropping_either_half_closes_the_socket() {
    let (scene, mut sockets) = plain_door().await;
    let mut line = upgraded(&scene).await;
    let (reader, writer) = sockets.recv().await.unwrap().split();
    drop(reader);
    assert_eq!(line.frame().await.close_code(), 1000);
    writer.closed().await;

    let mut line = upgraded(&scene).await;
    let (mut reader, writer) = sockets.recv().await.unwrap().split();
    drop(writer);
    assert_eq!(line.frame().await.close_code(), 1000);
    // The other end never answers the close; the reader does not wait for ever.
    let ended = reader.next().await.unwrap_err();
    assert!(matches!(ended, Ended::ClosedHere), "{ended}");
}

#[tokio::test]
async fn a_stop_waits_for_sockets_that_end_themselves_and_cuts_those_that_do_not() {
    let (scene, mut sockets) = plain_door().await;
    let mut line = upgraded(&scene).await;
    let (_reader, writer) = sockets.recv().await.unwrap().split();
    let stopping = scene.stop.clone();
    tokio::spawn(async move {
        stopping.cancelled().await;
        writer.close(Close::new(Close::GOING_AWAY, "stopping"));
    });
    let stopped = tokio::spawn(scene.stopped());
    assert_eq!(line.frame().await.close_code(), 1001);
    drop(line);
    assert_eq!(stopped.await.unwrap(), DoorEnded { cut: 0 });

    let drain_timeout = Duration::from_millis(500);
    let (scene, mut sockets) =
        door(socket::Bounds::default(), Bounds { drain_timeout, ..Bounds::default() }).await;
    let _line = upgraded(&scene).await;
    // Somebody holds on to the writer: its task does not end by itself.
    let (_reader, _writer) = sockets.recv().await.unwrap().split();
    assert_eq!(scene.stopped().await, DoorEnded { cut: 1 });
}

#[tokio::test]
async fn an_upgraded_connection_keeps_its_place_until_the_socket_ends() {
    let held = Arc::new(Mutex::new(Vec::new()));
    let keep = held.clone();
    let router = Router::new().route(
        "/socket",
        get(async move |upgrade: Upgrade| {
            upgrade.accept(async move |socket| {
                let (mut reader, writer) = socket.split();
                keep.lock().await.push(writer);
                let _ = reader.next().await;
                keep.lock().await.clear();
            })
        }),
    );
    let bounds = Bounds { connections_max: 2, unauthenticated_per_address_max: 1, ..Bounds::default() };
    let scene = Scene::open(router, bounds).await;
    let mut line = upgraded(&scene).await;
    // Its ticket proved who it is, so a stranger of the same address may come in; then the door is full.
    let mut second = scene.line().await;
    second.say(&scene.head("GET /", &[]).replace("connection: close\r\n", "")).await;
    second.until("\r\n\r\n").await;
    assert_eq!(scene.line().await.rest().await, "", "the door is full");
    drop(second);
    line.push(&frame(FIN | CLOSE, b"\x03\xe8")).await;
    assert_eq!(line.frame().await.close_code(), 1000);
    assert_eq!(line.rest().await, "");
    let again = async {
        loop {
            let answer = scene.exchange(&scene.head("GET /", &[])).await;
            if !answer.is_empty() {
                break answer;
            }
        }
    };
    let answer = tokio::time::timeout(Duration::from_secs(30), again).await.expect("the place is free again");
    assert!(answer.starts_with("HTTP/1.1 404 "));
}
