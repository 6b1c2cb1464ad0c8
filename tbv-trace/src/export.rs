//! `tbv-trace export`: what was counted so far, as OpenMetrics over HTTP.

use std::{cell::RefCell, convert::Infallible, process::ExitCode, rc::Rc, sync::Arc, time::Duration};

use anyhow::{Context as _, Result};
use http_body_util::Full;
use hyper::{
    Method, Request, Response, StatusCode,
    body::{Bytes, Incoming},
    header::{ALLOW, CONTENT_TYPE},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use tbv_core::{Filter, Names, OnlyDevices, Options, Report, Spans, Tracer};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore},
    task::LocalSet,
    time::{MissedTickBehavior, interval},
};

use crate::{
    cli::ExportArgs,
    ending::{self, Ending, Second, Signals},
    exit,
    hist::{By, openmetrics},
    text,
    verbose::Log,
};

/// How often it is looked whether the hook is still on.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// How often begins of spans are forgotten whose end will not come, in looks.
const TIDY_EVERY: u32 = 20;
/// Clients at a time: an answer is kept until it is read.
const MOST_CLIENTS: usize = 8;
/// How long a client may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// What is served, as the OpenMetrics specification names it.
const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const TEXT: &str = "text/plain; charset=utf-8";

/// `tbv-trace export`.
pub(crate) fn export(args: &ExportArgs, log: &Log) -> Result<ExitCode> {
    ending::block_on(LocalSet::new().run_until(async {
        let signals = Signals::catch(Second::Ends)?;
        // First: an address that is taken costs no tracing.
        let listening = TcpListener::bind(args.listen).await;
        let listener = listening.with_context(|| format!("cannot listen on {}", args.listen))?;
        let filter = args.who.filter();
        let exporter = Rc::new(RefCell::new(Exporter::start(args, filter, log)?));
        let mut ending = Ending::of_processes(&args.who.pid, args.duration, signals)?;
        let address = listener.local_addr().context("asking where we listen")?;
        say!("serving http://{address}/metrics; Ctrl-C ends it");
        let clients = Arc::new(Semaphore::new(MOST_CLIENTS));
        let mut clock = interval(LOOK_EVERY);
        clock.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let mut looks = 0u32;
        loop {
            tokio::select! {
                biased;
                ended = ending.end() => { ended?; break }
                // Before clients, or they could keep it from being done.
                _ = clock.tick() => {
                    looks = looks.wrapping_add(1);
                    let tracer = &mut exporter.borrow_mut().tracer;
                    tracer.hook_was_off();
                    if looks.is_multiple_of(TIDY_EVERY) {
                        tracer.tidy()?;
                    }
                    log.flush();
                }
                client = accept(&listener, &clients) => if let Ok((stream, place)) = client {
                    tokio::task::spawn_local(serve(stream, exporter.clone(), place));
                },
            }
        }
        let lost = exporter.borrow_mut().tracer.stop()?.losses;
        if lost.total > 0 {
            say!("{}", text::losses(&lost));
        }
        Ok(exit::after(args.how.strict, lost.total, None))
    }))
}

struct Exporter {
    tracer: Tracer,
    names: Names,
    devices: OnlyDevices,
}

impl Exporter {
    fn start(args: &ExportArgs, filter: Filter, log: &Log) -> Result<Self> {
        let names = Names::now();
        let devices = names.only(&filter.devices);
        let options = Options {
            hook: args.how.hook,
            filter,
            max_rows: args.max_rows,
            spans: Spans::Counted,
            usdt: args.probes.files(|| args.who.providers())?,
            log: log.wanted(),
            ..Options::default()
        };
        let mut tracer = Tracer::start(&options)?;
        log.attached(&mut tracer)?;
        Ok(Exporter { tracer, names, devices })
    }

    fn metrics(&mut self) -> Result<String> {
        self.names.learn();
        let counted = self.tracer.snapshot()?.on(&self.devices);
        let environment = self.tracer.environment(&self.names.devices);
        let report = Report::new(&counted, environment, &self.names);
        openmetrics::render(&report, By::ALL)
    }
}

/// The next client, once there is a place for it. An error (too many files, one that went away again) is not hurried past.
async fn accept(
    listener: &TcpListener,
    clients: &Arc<Semaphore>,
) -> Result<(TcpStream, OwnedSemaphorePermit)> {
    let place = clients.clone().acquire_owned().await?;
    match listener.accept().await {
        Ok((stream, _)) => Ok((stream, place)),
        Err(error) => {
            tokio::time::sleep(LOOK_EVERY).await;
            Err(error.into())
        }
    }
}

async fn serve(stream: TcpStream, exporter: Rc<RefCell<Exporter>>, _place: OwnedSemaphorePermit) {
    let answer = service_fn(|request: Request<Incoming>| {
        let exporter = exporter.clone();
        async move { Ok::<_, Infallible>(answer(&request, &exporter)) }
    });
    // A client that breaks off is its own affair.
    let mut server = http1::Builder::new();
    server.timer(TokioTimer::new()).header_read_timeout(PATIENCE).keep_alive(false);
    let _ = tokio::time::timeout(PATIENCE, server.serve_connection(TokioIo::new(stream), answer)).await;
}

fn answer(request: &Request<Incoming>, exporter: &RefCell<Exporter>) -> Response<Full<Bytes>> {
    let (status, kind, body) = match (request.method(), request.uri().path()) {
        (&Method::GET | &Method::HEAD, "/metrics") => match exporter.borrow_mut().metrics() {
            Ok(text) => (StatusCode::OK, OPENMETRICS, text),
            Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, TEXT, format!("{error:#}\n")),
        },
        (&Method::GET | &Method::HEAD, _) => {
            (StatusCode::NOT_FOUND, TEXT, "there is only /metrics\n".to_owned())
        }
        _ => (StatusCode::METHOD_NOT_ALLOWED, TEXT, "only GET\n".to_owned()),
    };
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    if let Ok(value) = kind.parse() {
        response.headers_mut().insert(CONTENT_TYPE, value);
    }
    if status == StatusCode::METHOD_NOT_ALLOWED
        && let Ok(value) = "GET, HEAD".parse()
    {
        response.headers_mut().insert(ALLOW, value);
    }
    response
}
