// The page of a room: opens one if there is none yet, and puts its parts together.

import { get, roomLink, ServerError, withToken } from "./api.js";
import { Board } from "./board.js";
import { Controls } from "./controls.js";
import { byId, element, remember, remembered, setText, show, soon } from "./dom.js";
import { Mind, Predictions, Story, Utilities, Values } from "./mind.js";
import { agentName, sentences } from "./names.js";
import { Pairs } from "./pairs.js";
import { latency, Player, TakeDialog } from "./player.js";
import { Room } from "./room.js";
import { firstConfig, openRoom, Setup } from "./setup.js";
import { Shortcuts } from "./shortcuts.js";
import { TableView } from "./tableview.js";
import { Team } from "./team.js";
import { Facts, Timeline } from "./timeline.js";
import { TypeMap } from "./typemap.js";

const SPOKEN_EVERY_MS = 2500;

/** Say something to everybody: as a note on the page, and to screen readers. */
function announce(text, kind = "note") {
  if (!text) return;
  const list = byId("notes");
  const note = element("li", { class: `note-${kind}`, text });
  list.append(note);
  while (list.children.length > 3) list.firstChild.remove();
  setTimeout(() => note.remove(), kind === "fault" ? 8000 : 4500);
}

/** Tell screen readers what happens in the game, not more often than they can speak. */
class Speaker {
  constructor(room) {
    this.region = byId("spoken");
    this.last = 0;
    room.on("shown", ({ frame }) => {
      const texts = sentences(room, frame);
      const now = performance.now();
      if (!texts.length || now - this.last < SPOKEN_EVERY_MS) return;
      this.last = now;
      setText(this.region, `Step ${frame.step}: ${texts.join(". ")}.`);
    });
  }
}

function watchConnection(room) {
  const pill = byId("connection");
  let seat = null;
  let failures = 0;
  const update = soon(() => {
    const { state } = room.connection;
    pill.dataset.state = state;
    const people = room.people.length;
    const words = {
      connecting: "connecting…",
      lost: "connection lost",
      open: people > 1 ? `${people} people here` : "connected",
    };
    setText(pill, words[state]);
    show(byId("lost"), state !== "open" && failures > 0);
  });
  room.on("connection", ({ state, reason }) => {
    if (state === "lost") {
      failures += 1;
      seat = room.mySlot ?? seat;
      if (!room.known && failures >= 2) {
        setText(
          byId("lost-text"),
          reason ||
            "This room does not exist, or no longer: rooms close when nobody has been in them for a while.",
        );
        show(byId("lost-new"), true);
      } else
        setText(
          byId("lost-text"),
          reason ? `${reason} Trying again…` : "The connection is lost. Trying again…",
        );
    }
    update();
  });
  room.on("welcome", () => {
    if (failures && seat !== null && room.mySlot === null) {
      announce("You are back. Your place was given away; take a place again whenever you like.");
    }
    failures = 0;
    seat = null;
    update();
  });
  room.on("status", update);
}

function title(room, catalogue) {
  const game = catalogue.games.find((each) => each.name === room.config.game);
  const name = game?.title ?? room.config.game;
  const agent = catalogue.agents.find((each) => each.id === room.config.agent);
  setText(byId("room-title"), name);
  setText(byId("room-agent"), agent?.title ?? room.config.agent);
  setText(byId("mind-agent"), room.config.agent);
  show(byId("replay-note"), Boolean(room.replay));
  document.title = `${name} · Dropin arena`;
}

const LOCAL_NAMES = ["localhost", "127.0.0.1", "[::1]"];

function share(room) {
  const dialog = byId("share");
  const link = byId("share-link");
  byId("open-share").addEventListener("click", () => {
    link.value = roomLink(room.id);
    show(byId("share-local"), LOCAL_NAMES.includes(location.hostname));
    setText(byId("share-said"), "");
    dialog.showModal();
    link.select();
  });
  byId("share-copy").addEventListener("click", async () => {
    link.select();
    try {
      await navigator.clipboard.writeText(link.value);
      setText(byId("share-said"), "Copied.");
    } catch {
      setText(byId("share-said"), "Press Ctrl+C to copy the marked link.");
    }
  });
  byId("share-close").addEventListener("click", () => dialog.close());
}

async function roomOfPage(catalogue) {
  const [, id] = location.pathname.match(/^\/r\/([^/]+)/) ?? [];
  if (id) return decodeURIComponent(id);
  const room = catalogue.replay ?? (await openRoom(firstConfig(catalogue)));
  history.replaceState(null, "", withToken(`/r/${encodeURIComponent(room)}`));
  return room;
}

async function start() {
  const catalogue = await get("/api/catalogue");
  const name = remembered("name");
  const room = new Room(await roomOfPage(catalogue), name ? { name } : {});
  const player = new Player(room, { announce });
  const dialog = new TakeDialog(room, { announce });
  const board = new Board(room, {
    canvas: byId("board"),
    wrap: byId("board-wrap"),
    onPick: (slot) => {
      room.select(slot);
      const free = !room.people.some((person) => person.slot === slot);
      if (free && room.mySlot === null) dialog.open(slot);
    },
    onDrawn: (frame) => player.drawn(frame),
  });
  const controls = new Controls(room);
  const setup = new Setup(catalogue);
  const pairs = new Pairs(room, board);
  const mind = new Mind(room, {
    always: [new Values(room)],
    tabs: {
      predictions: new Predictions(room),
      utilities: new Utilities(room),
      pairs,
      types: new TypeMap(room),
      story: new Story(room, sentences),
    },
  });
  new Timeline(room);
  new Facts(room);
  new TableView(room);
  new Team(room, { onTake: (slot) => dialog.open(slot) });
  new Speaker(room);
  new Shortcuts(room, controls, player);
  watchConnection(room);
  share(room);
  room.on("welcome", () => title(room, catalogue));
  room.on("fault", (text) => announce(text, "fault"));
  room.on("preparing", () => show(byId("loading"), true));
  room.on("shown", () => show(byId("loading"), false));
  room.on("choice", () => remember("types", room.typesShown ? "shown" : "hidden"));
  byId("open-setup").addEventListener("click", () => setup.open(room.config));
  window.dropinArena = {
    room,
    board,
    controls,
    mind,
    latency,
    agentName: (slot) => agentName(room, slot),
  };
}

// Links to a new room need the token, too.
for (const link of document.querySelectorAll('a[href="/"]')) link.href = withToken("/");

start().catch((problem) => {
  show(byId("loading"), false);
  setText(
    byId("lost-text"),
    problem instanceof ServerError ? problem.message : "The page could not start. Load it again.",
  );
  show(byId("lost"), true);
  show(byId("lost-new"), true);
  if (!(problem instanceof ServerError)) throw problem;
});
