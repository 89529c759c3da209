/** Texts of models, tools, files and people: the program's work on them is linear. */
import { describe, expect, it } from "@effect/vitest"
import { Effect, FileSystem, Path } from "effect"
import { Message, type AgentEvent } from "effect-deepagents"
import { AgentFile } from "effect-deepagents/agents"
import { CommandRule } from "effect-deepagents/backends"
import { View } from "effect-deepagents/view"
import { mentionsLimit } from "../../src/cli/internal/approvals/isolated.ts"
import { withFiles } from "../../src/cli/internal/chat/attach.ts"
import { makeCompletion } from "../../src/cli/internal/chat/completion/completion.ts"
import { makeInput } from "../../src/cli/internal/input/input.ts"
import { load } from "../../src/cli/internal/markdown/highlight.ts"
import { render, renderLive } from "../../src/cli/internal/markdown/markdown.ts"
import { partLines } from "../../src/cli/internal/render/part.ts"
import { fit, styleOf, wrap } from "../../src/cli/internal/render/style.ts"
import { clean, cleanLine } from "../../src/support/text/clean.ts"
import { inPieces, type Parser, slowOn } from "../fuzz/pieces.ts"

/** Pieces that matter to Markdown, shells and terminals. */
const more = [
  "\\ ",
  "a.png ",
  '"a ',
  "'a ",
  "&& ",
  " ;",
  "\u001b[1;",
  "\u001b]8;;",
  "‮",
  "אב",
  "👩‍👩‍👧",
  "漢字",
  "[a](",
  "[a][",
  "![",
  "[a]: b\n",
  "**a ",
  "_a",
  "~~",
  "| a ",
  "| a |\n| - |\n",
  "<!--",
  "www.a",
  "1. a\n",
  "  - a\n",
  "> ",
  "@a ",
  "no such file or directory ",
  "/home/a"
]

const style = styleOf(true)
const highlight = await load()
const surface = { columns: 80, style, highlight }
const base = { seq: 0, runId: "r", path: ["a"], at: 1 }

const started: AgentEvent.AgentEvent = { _tag: "RunStarted", ...base, agent: "a" }

const reduced = (events: Iterable<AgentEvent.AgentEvent>) => {
  let view = View.empty
  for (const event of events) {
    const [next, parts] = View.reduce(view, event)
    view = next
    for (const part of parts) partLines(part, { ...surface, highlight: undefined })
  }
  View.openText(view)
}

const parsers: Readonly<Record<string, Parser>> = {
  "the tools of an agent's file": (text) => {
    const matter = `description: a\ntools: ${JSON.stringify(text.slice(0, 60_000))}`
    for (const claude of [true, false]) {
      Effect.runSyncExit(AgentFile.parse(`---\n${matter}\n---\nprompt`, { path: "a.md", claude }))
    }
  },
  "an agent's file": (text) => Effect.runSyncExit(AgentFile.parse(`---\n${text.slice(0, 60_000)}`, { path: "a.md" })),
  "a command that is asked about": (text) => {
    const where = { cwd: "/p", folders: ["/p"] }
    for (const command of [text, `"${text}`, `a${text}b`]) {
      CommandRule.decide(
        command,
        where,
        [{ ruling: "refuse", command: "git push:*" }],
        [CommandRule.learn(command, where)]
      )
    }
  },
  "a message that may name images": (text) =>
    Effect.runSyncExit(
      Effect.provide(withFiles(text, "id"), [
        FileSystem.layerNoop({ readFile: () => Effect.die("there is no file") }),
        Path.layer
      ])
    ),
  "an answer as it comes": (text) =>
    reduced([
      started,
      ...inPieces(text, 7).map((one): AgentEvent.AgentEvent => ({ _tag: "TextDelta", ...base, text: one }))
    ]),
  "a stored conversation": (text) => View.ofMessages([Message.human(text), Message.ai(text)]),
  "Markdown that is shown": (text) => {
    render(text, surface)
    renderLive(text.slice(-6_000), surface)
  },
  "a listing in colours": (text) => {
    for (const language of ["ts", "python", "xml", "bash", "yaml"]) highlight(text, language, style)
  },
  "text made harmless": (text) => {
    clean(text)
    cleanLine(text)
    View.withMarks(text)
  },
  "the output of an isolated command": (text) => mentionsLimit(text),
  "a line that is too long": (text) => {
    fit(text, 80)
    fit(style.red(text), 80)
    wrap(text, 80)
  },
  "a draft, and a key in it": (text) => {
    const input = makeInput({ rows: () => 24, onSubmit: () => {}, onChange: () => completion.changed() })
    const completion = makeCompletion({
      input,
      commands: () => [],
      submit: () => {},
      onFile: () => {},
      onPick: () => {}
    })
    input.set(text)
    input.press("x")
    input.render(80)
    completion.remember([text])
    completion.search()
  }
}

describe("cost grows as the text does", () => {
  for (const [name, parse] of Object.entries(parsers)) {
    it(
      name,
      () => {
        expect(slowOn(parse, more)).toEqual([])
      },
      300_000
    )
  }
})
