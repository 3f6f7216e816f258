//! Just enough of HTTP/1.1 to ask a server on this machine.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

/// A small machine may take its time over a long answer.
const PATIENCE: Duration = Duration::from_secs(300);

/// No answer in a test is longer.
const LONGEST: u64 = 64 * 1024 * 1024;

/// Sends JSON and gives the status and what came back. A body that is not JSON comes as a text.
///
/// # Errors
/// When the server cannot be reached, or its answer breaks off or is not HTTP.
pub fn post_json(address: SocketAddr, path: &str, body: &Value) -> io::Result<(u16, Value)> {
    let body = body.to_string();
    let head = format!("Content-Type: application/json\r\nContent-Length: {}\r\n", body.len());
    ask(address, &format!("POST {path}"), &head, &body)
}

/// Asks and gives the status and what came back. A body that is not JSON comes as a text.
///
/// # Errors
/// When the server cannot be reached, or its answer breaks off or is not HTTP.
pub fn get_json(address: SocketAddr, path: &str) -> io::Result<(u16, Value)> {
    ask(address, &format!("GET {path}"), "", "")
}

fn ask(address: SocketAddr, what: &str, head: &str, body: &str) -> io::Result<(u16, Value)> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let request =
        format!("{what} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{head}\r\n{body}");
    stream.write_all(request.as_bytes())?;
    read_answer(&mut BufReader::new(stream.take(LONGEST)))
}

fn read_answer(stream: &mut impl BufRead) -> io::Result<(u16, Value)> {
    let status = line(stream)?;
    let status = status.split(' ').nth(1).and_then(|code| code.parse().ok());
    let status = status.ok_or_else(|| broken("the answer is not HTTP"))?;
    let (mut length, mut chunked) = (None, false);
    loop {
        let header = line(stream)?;
        if header.is_empty() {
            break;
        }
        let (name, value) = header.split_once(':').ok_or_else(|| broken("a header is broken"))?;
        match (name.to_ascii_lowercase().as_str(), value.trim()) {
            ("content-length", value) => {
                length = Some(value.parse().map_err(|_| broken("a length is broken"))?);
            }
            ("transfer-encoding", value) => chunked = value.eq_ignore_ascii_case("chunked"),
            _ => {}
        }
    }
    let mut body = Vec::new();
    match (chunked, length) {
        (true, _) => read_chunks(stream, &mut body)?,
        (false, Some(length)) => read_exactly(stream, length, &mut body)?,
        (false, None) => {
            stream.read_to_end(&mut body)?;
        }
    }
    let text = || Value::String(String::from_utf8_lossy(&body).into_owned());
    Ok((status, serde_json::from_slice(&body).unwrap_or_else(|_| text())))
}

fn read_chunks(stream: &mut impl BufRead, body: &mut Vec<u8>) -> io::Result<()> {
    loop {
        let size = line(stream)?;
        let size = size.split(';').next().unwrap_or_default().trim();
        let size = u64::from_str_radix(size, 16).map_err(|_| broken("a chunk is broken"))?;
        if size == 0 {
            return Ok(());
        }
        read_exactly(stream, size, body)?;
        line(stream)?;
    }
}

fn read_exactly(stream: &mut impl BufRead, length: u64, body: &mut Vec<u8>) -> io::Result<()> {
    match stream.take(length).read_to_end(body)? as u64 == length {
        true => Ok(()),
        false => Err(broken("the answer breaks off")),
    }
}

/// A line without its end.
fn line(stream: &mut impl BufRead) -> io::Result<String> {
    let mut line = String::new();
    stream.take(64 * 1024).read_line(&mut line)?;
    let whole = line.strip_suffix('\n').ok_or_else(|| broken("the answer breaks off"))?;
    Ok(whole.trim_end_matches('\r').to_owned())
}

fn broken(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn answer(text: &str) -> io::Result<(u16, Value)> {
        read_answer(&mut text.as_bytes())
    }

    #[test]
    fn bodies_end_by_length_by_chunks_or_with_the_stream() {
        let by_length = "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n{\"a\":1}more";
        assert_eq!(answer(by_length).unwrap(), (200, json!({"a": 1})));
        let chunks = "HTTP/1.1 404 Not Found\r\ntransfer-encoding: chunked\r\n\r\n\
                      3;x=y\r\n{\"a\r\n4\r\n\":2}\r\n0\r\n\r\n";
        assert_eq!(answer(chunks).unwrap(), (404, json!({"a": 2})));
        let by_end = "HTTP/1.0 500 Oh\r\nX: y\r\n\r\nnot json";
        assert_eq!(answer(by_end).unwrap(), (500, json!("not json")));
    }

    #[test]
    fn an_answer_that_breaks_off_is_an_error() {
        let whole = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n";
        assert_eq!(answer(whole).unwrap(), (200, json!({})));
        for cut in 0..whole.len() {
            assert!(answer(&whole[..cut]).is_err(), "{cut}");
        }
        let short = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}";
        assert!(answer(short).unwrap_err().to_string().contains("breaks off"));
    }
}
