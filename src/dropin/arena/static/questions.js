// The questions of a study as a form: scales, choices and texts.

import { element } from "./dom.js";

/** Fill a form with questions. */
export function showQuestions(form, questions) {
  form.replaceChildren(...questions.map((question) => BUILDERS[question.kind](question)));
  form.hidden = false;
}

/** The answers of a form; null if a required one is missing, which is then marked. */
export function readAnswers(form, questions) {
  const answers = {};
  let complete = true;
  for (const question of questions) {
    const value = read(form, question);
    const node = form.querySelector(`[data-question="${CSS.escape(question.id)}"]`);
    const missing = question.required && value === "";
    node.classList.toggle("unanswered", missing);
    if (missing && complete) node.querySelector("input, textarea")?.focus();
    complete = complete && !missing;
    if (value !== "") answers[question.id] = value;
  }
  return complete ? answers : null;
}

function read(form, { id, kind }) {
  const node = form.querySelector(`[data-question="${CSS.escape(id)}"]`);
  if (kind === "text") return node.querySelector("textarea").value.trim();
  const chosen = node.querySelector("input:checked")?.value ?? "";
  return kind === "scale" && chosen !== "" ? Number(chosen) : chosen;
}

function frame(question, ...content) {
  const optional = question.required
    ? null
    : element("span", { class: "optional", text: "optional" });
  const legend = element("legend", {}, question.text, optional);
  return element(
    "fieldset",
    { class: "question", data: { question: question.id } },
    legend,
    ...content,
  );
}

const BUILDERS = {
  scale(question) {
    const numbers = Array.from(
      { length: question.max - question.min + 1 },
      (_, index) => question.min + index,
    );
    const meaning = (number) =>
      (number === question.min && question.low) || (number === question.max && question.high) || "";
    const labels = numbers.map((number) =>
      element(
        "label",
        {},
        element("input", {
          type: "radio",
          name: question.id,
          value: number,
          "aria-label": `${number} ${meaning(number)}`.trim(),
        }),
        element("span", { text: String(number) }),
      ),
    );
    const ends = element(
      "div",
      { class: "ends", "aria-hidden": "true" },
      element("span", { text: question.low ?? "" }),
      element("span", { text: question.high ?? "" }),
    );
    return frame(
      question,
      element("div", { class: "scale" }, ...labels),
      question.low || question.high ? ends : null,
    );
  },

  choice(question) {
    const labels = question.options.map((option) =>
      element(
        "label",
        { class: "radio" },
        element("input", { type: "radio", name: question.id, value: option }),
        element("span", { text: option }),
      ),
    );
    return frame(question, ...labels);
  },

  text(question) {
    return frame(
      question,
      element("textarea", {
        name: question.id,
        maxlength: question.max_length ?? 1000,
        "aria-label": question.text,
      }),
    );
  },
};
