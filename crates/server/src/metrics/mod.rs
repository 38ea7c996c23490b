//! A port of its own for those who look after the server: metrics in Prometheus' form and health, over HTTP.
//!
//! | path | |
//! |---|---|
//! | `/metrics` | `serverStatus` as [`text`] |
//! | `/healthz` | 200 while the process serves commands |
//! | `/readyz` | 200 when clients may come, 503 when the server is stopping |
//!
//! Whoever reaches the port may read all this; it tells of counts and of no data. It is off unless `--metricsPort` is given, and then on
//! addresses of this machine only, unless `--metricsBindIp` names others.

pub mod text;

use crate::serve::Server;
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderValue};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use nestor_model::doc;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

/// Connections at one time; further ones wait.
const CONNECTIONS_MAX: usize = 32;
/// How long a request may take to come.
const REQUEST_MAX: Duration = Duration::from_secs(10);
/// How long a connection lives at most.
const LIFE_MAX: Duration = Duration::from_secs(300);
/// Pause after the system had no file for a connection.
const BACKOFF: Duration = Duration::from_millis(100);

/// Answers for ever.
pub async fn serve(server: Arc<Server>, listener: TcpListener) {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let Ok(place) = places.clone().acquire_owned().await else {
            return;
        };
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(BACKOFF).await;
            continue;
        };
        let server = server.clone();
        tokio::spawn(async move {
            let service = service_fn(|request| {
                let answer = answer(&server, &request);
                async move { Ok::<_, Infallible>(answer) }
            });
            let connection = hyper::server::conn::http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(REQUEST_MAX)
                .serve_connection(TokioIo::new(stream), service);
            // Clients are answered when they err; an error that comes here means that the client went away.
            let _ = tokio::time::timeout(LIFE_MAX, connection).await;
            drop(place);
        });
    }
}

fn answer(server: &Server, request: &Request<Incoming>) -> Response<Full<Bytes>> {
    const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";
    let (status, body) = match (request.method(), request.uri().path()) {
        (&Method::GET | &Method::HEAD, "/metrics") => {
            let status = server.service.run_as_process(doc! { "serverStatus": 1 });
            (StatusCode::OK, text::of_status(status.as_ref()))
        }
        (&Method::GET | &Method::HEAD, "/healthz") => match server.service.run_as_process(doc! { "ping": 1 }).get("ok")
        {
            Some(ok) if ok.truthy() => (StatusCode::OK, "ok\n".to_owned()),
            _ => (StatusCode::SERVICE_UNAVAILABLE, "no command is answered\n".to_owned()),
        },
        (&Method::GET | &Method::HEAD, "/readyz") => match server.is_draining() {
            false => (StatusCode::OK, "ready\n".to_owned()),
            true => (StatusCode::SERVICE_UNAVAILABLE, "stopping\n".to_owned()),
        },
        (&Method::GET | &Method::HEAD, _) => (StatusCode::NOT_FOUND, "/metrics, /healthz or /readyz\n".to_owned()),
        _ => (StatusCode::METHOD_NOT_ALLOWED, "GET or HEAD\n".to_owned()),
    };
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static(TEXT));
    if status == StatusCode::METHOD_NOT_ALLOWED {
        response
            .headers_mut()
            .insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
    }
    response
}
