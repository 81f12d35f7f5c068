// The pages of a study: reading, rounds of play, questions, and the completion code.

import { get, post, ServerError } from "./api.js";
import { Board } from "./board.js";
import { byId, element, format, setText, show, soon } from "./dom.js";
import { latency, Player } from "./player.js";
import { readAnswers, showQuestions } from "./questions.js";
import { Room } from "./room.js";

const SESSION = "dropin-study-session";
const TITLES = { questions: "Your view", round: "The next round", end: "Done" };
const query = new URLSearchParams(location.search);

/** Keep the session for this tab, so that a participant who loads the page again goes on. */
function keepSession(session) {
  try {
    sessionStorage.setItem(SESSION, session);
  } catch {
    // Without storage the page has to stay open.
  }
}

function keptSession() {
  try {
    return sessionStorage.getItem(SESSION);
  } catch {
    return null;
  }
}

class Study {
  constructor() {
    this.session = null;
    this.room = null;
    this.busy = false;
    byId("continue").addEventListener("click", () => this.#continue());
    byId("round-next").addEventListener("click", () => this.#next());
    byId("questions").addEventListener("submit", (event) => {
      event.preventDefault();
      this.#continue();
    });
    byId("copy-code").addEventListener("click", () => this.#copy());
  }

  async start() {
    const kept = keptSession();
    if (kept) {
      try {
        this.session = kept;
        this.#show(await get(this.#path()));
        return;
      } catch (problem) {
        if (!(problem instanceof ServerError)) throw problem;
      }
    }
    const asked = {};
    for (const name of ["participant", "condition"])
      if (query.has(name)) asked[name] = query.get(name);
    const { session, page } = await post("/api/study/start", asked);
    this.session = session;
    keepSession(session);
    this.#show(page);
  }

  #path(more = "") {
    return `/api/study/${encodeURIComponent(this.session)}${more}`;
  }

  #show(page) {
    this.page = page;
    this.#leaveRoom();
    show(byId("reading"), true);
    show(byId("round"), false);
    for (const id of ["questions", "code", "page-error"]) show(byId(id), false);
    if (page.study) {
      setText(byId("study-title"), page.study);
      document.title = page.study;
    }
    setText(byId("page-title"), page.title || TITLES[page.kind] || "");
    byId("page-text").replaceChildren(...paragraphs(page.text));
    const button = byId("continue");
    setText(button, page.button ?? (page.kind === "round" ? "Start" : "Next"));
    show(button, page.kind !== "end");
    this.#progress(page);
    if (page.kind === "questions") showQuestions(byId("questions"), page.questions);
    if (page.kind === "end") this.#end(page);
    byId("reading").focus({ preventScroll: true });
    window.scrollTo(0, 0);
  }

  #progress({ progress: [page, of] }) {
    const bar = byId("progress");
    bar.setAttribute("aria-valuemax", String(of - 1));
    bar.setAttribute("aria-valuenow", String(page));
    bar.firstElementChild.style.setProperty("--share", (page / (of - 1)).toFixed(3));
  }

  #end({ code }) {
    setText(byId("completion-code"), code ?? "");
    show(byId("code"), Boolean(code));
  }

  async #copy() {
    try {
      await navigator.clipboard.writeText(byId("completion-code").textContent);
      setText(byId("copy-code"), "Copied");
    } catch {
      setText(byId("copy-code"), "Select it and copy");
    }
  }

  #continue() {
    if (this.page.kind === "round") this.#play();
    else this.#next();
  }

  /** Go on to the next page, with the answers if there were questions. */
  async #next() {
    if (this.busy) return;
    const body = this.page.consent ? { answers: { consent: true } } : {};
    if (this.page.kind === "questions") {
      body.answers = readAnswers(byId("questions"), this.page.questions);
      if (body.answers === null) {
        this.#fault("Please answer the marked questions.");
        return;
      }
    }
    this.busy = true;
    try {
      this.#show((await post(this.#path("/next"), body)).page);
    } catch (problem) {
      if (!(problem instanceof ServerError)) throw problem;
      this.#fault(problem.message);
    } finally {
      this.busy = false;
    }
  }

  #fault(sentence) {
    setText(byId("page-error"), sentence);
    show(byId("page-error"), true);
    if (!byId("round").hidden) note(sentence);
  }

  #play() {
    const { page } = this;
    show(byId("reading"), false);
    show(byId("round"), true);
    show(byId("round-over"), false);
    setText(byId("round-title"), page.title ?? "");
    setText(byId("round-text"), (page.text ?? "").trim());
    const room = new Room(page.room, { session: this.session });
    this.room = room;
    const player = (this.player = new Player(room, { announce: note, study: true }));
    this.board = new Board(room, {
      canvas: byId("board"),
      wrap: byId("board-wrap"),
      onDrawn: (frame) => player.drawn(frame),
    });
    const update = soon(() => this.#facts());
    for (const name of ["shown", "status", "episode"]) room.on(name, update);
    room.on("shown", () => show(byId("loading"), false));
    room.on("over", () => this.#over());
    room.on("fault", note);
    room.on("connection", ({ state }) => this.#connection(state));
    // Whoever comes back after the last episode has no place any more.
    room.on("welcome", () => room.mySlot === null && this.#over());
    window.dropinArena = { room, board: this.board, latency, study: this };
  }

  #connection(state) {
    const pill = byId("connection");
    show(pill, true);
    pill.dataset.state = state;
    setText(
      pill,
      { open: "connected", lost: "connection lost, trying again…", connecting: "connecting…" }[
        state
      ],
    );
  }

  #facts() {
    const { frame, episode } = this.room ?? {};
    if (!frame) return;
    setText(byId("round-step"), String(frame.step));
    setText(
      byId("round-episode"),
      this.page.episodes > 1 ? `${(episode ?? 0) + 1} of ${this.page.episodes}` : "1",
    );
    setText(byId("round-return"), format(frame.score));
  }

  #over() {
    show(byId("player"), false);
    setText(byId("round-over-text"), "This round is over.");
    show(byId("round-over"), true);
    byId("round-next").focus();
  }

  #leaveRoom() {
    this.room?.leave();
    this.player?.end();
    this.board?.end();
    this.room = null;
    show(byId("connection"), false);
    show(byId("loading"), true);
  }
}

/** Paragraphs of a text, which are separated by empty lines. */
function paragraphs(text) {
  return (text ?? "")
    .split(/\n\s*\n/)
    .filter((part) => part.trim())
    .map((part) => element("p", { text: part.trim().replace(/\s*\n\s*/g, " ") }));
}

function note(text) {
  const item = element("li", { text });
  byId("notes").append(item);
  setTimeout(() => item.remove(), 5000);
}

new Study().start().catch((problem) => {
  setText(byId("page-title"), "The study cannot start");
  setText(
    byId("page-error"),
    problem instanceof ServerError ? problem.message : "Load the page again.",
  );
  show(byId("page-error"), true);
  if (!(problem instanceof ServerError)) throw problem;
});
