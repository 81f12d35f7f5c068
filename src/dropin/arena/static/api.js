// Requests to the server. The token of the page's address goes with every one of them.

const token = new URLSearchParams(location.search).get("token");

/** An answer of the server that says what went wrong. */
export class ServerError extends Error {}

async function request(path, options = {}) {
  const headers = { ...options.headers };
  if (token) headers.Authorization = `Bearer ${token}`;
  let response;
  try {
    response = await fetch(path, { ...options, headers, cache: "no-store" });
  } catch {
    throw new ServerError("The server does not answer. Is it still running?");
  }
  const body = await response.json().catch(() => null);
  if (!response.ok) {
    throw new ServerError(
      body?.error ?? body?.message ?? `The server answered ${response.status}.`,
    );
  }
  return body;
}

/** Return the answer to a GET request. */
export function get(path) {
  return request(path);
}

/** Return the answer to a POST request with a JSON body. */
export function post(path, body = {}) {
  return request(path, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
  });
}

/** Return a path of this server with the token, for links and the address bar. */
export function withToken(path) {
  return token ? `${path}?token=${encodeURIComponent(token)}` : path;
}

/** Return the full link to a room. */
export function roomLink(room) {
  return location.origin + withToken(`/r/${encodeURIComponent(room)}`);
}

/** Open the web socket of a room. */
export function openSocket(room) {
  const scheme = location.protocol === "https:" ? "wss" : "ws";
  return new WebSocket(`${scheme}://${location.host}/ws/${encodeURIComponent(room)}`);
}

/** What the first message of a web socket says besides the name. */
export function credentials() {
  return token ? { token } : {};
}
