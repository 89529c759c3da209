/** ChatML, the frame of the LFM2, Hermes and Qwen families: `<|im_start|>role … <|im_end|>`. */
import type { GivenContent } from "../../../internal/turn/dialect.ts"
import type { AiTurn, AnsweredCall } from "../../../internal/turn/normalize.ts"
import { type Ask, type Piece, plain, type Prompt, special } from "./Codec.ts"

/** The tags around a thought. */
export const thinkTags = { open: "<think>", close: "</think>", anywhere: false }

/** The parts that a family writes in its own way. `force` begins a call, of the named tool if there is a name. */
export interface Style {
  readonly tools: ReadonlyArray<Piece>
  readonly calls: (calls: ReadonlyArray<AnsweredCall>) => ReadonlyArray<Piece>
  readonly results: (calls: ReadonlyArray<AnsweredCall>) => ReadonlyArray<Piece>
  readonly force: (name: string | undefined) => ReadonlyArray<Piece>
}

/** Marks that end a turn of the model. */
export const chatStops = ["<|im_end|>"]

/** The end of every turn. */
export const endOfTurn: ReadonlyArray<Piece> = [special("<|im_end|>"), plain("\n")]

/** All text of some content. */
export const textOf = (content: ReadonlyArray<GivenContent>): string =>
  content.flatMap((block) => (block.type === "text" ? [block.text] : [])).join("\n")

const emptyThought: ReadonlyArray<Piece> = [
  special(thinkTags.open),
  plain("\n\n"),
  special(thinkTags.close),
  plain("\n\n")
]

/** Writes a turn of the model: its thoughts only as long as it works on the same question. */
const writeTurn = (turn: AiTurn, recent: boolean): ReadonlyArray<Piece> =>
  turn.content.flatMap((block) =>
    block.type === "text"
      ? [plain(block.text)]
      : recent
        ? [special(thinkTags.open), plain(`\n${block.text}\n`), special(thinkTags.close), plain("\n\n")]
        : []
  )

/** Writes the beginning of the model's turn, by its template and the request. */
const beginning = (ask: Ask, style: Style): Omit<Prompt, "pieces"> & { readonly begun: ReadonlyArray<Piece> } => {
  const knows = ask.template.includes(thinkTags.open)
  const { toolChoice } = ask
  if (ask.tools.length > 0 && toolChoice !== "auto" && toolChoice !== "none") {
    const call = style.force(toolChoice === "required" ? undefined : toolChoice.tool)
    const text = call.map((piece) => piece.text).join("")
    return { begun: [...(knows ? emptyThought : []), ...call], said: text, inThought: false }
  }
  if (ask.thinking === false) return { begun: knows ? emptyThought : [], said: "", inThought: false }
  // A quote behind the tag ends a string of the template: there the turn begins inside of a thought.
  const generation = ask.template.slice(ask.template.lastIndexOf("add_generation_prompt"))
  const opened = /<think>(?:\\n|\n)*['"]/.test(generation)
  return { begun: opened ? [special(thinkTags.open), plain("\n")] : [], said: "", inThought: opened }
}

/** Writes a conversation. */
export const chatml = (ask: Ask, style: Style): Prompt => {
  const system = ask.systemPrompt.trim()
  const pieces: Array<Piece> = []
  if (system !== "" || ask.tools.length > 0) {
    pieces.push(special("<|im_start|>"), plain("system\n"), plain(system))
    if (ask.tools.length > 0) pieces.push(plain(system === "" ? "" : "\n\n"), ...style.tools)
    pieces.push(...endOfTurn)
  }
  const lastHuman = ask.turns.findLastIndex((turn) => turn.role === "human")
  ask.turns.forEach((turn, index) => {
    if (turn.role === "ai") {
      pieces.push(special("<|im_start|>"), plain("assistant\n"), ...writeTurn(turn, index > lastHuman))
      pieces.push(...style.calls(turn.calls), ...endOfTurn)
      if (turn.calls.length > 0) pieces.push(...style.results(turn.calls))
    } else {
      const text = turn.role === "system" ? turn.text : textOf(turn.content)
      pieces.push(special("<|im_start|>"), plain(`${turn.role === "system" ? "system" : "user"}\n${text}`))
      pieces.push(...endOfTurn)
    }
  })
  const { begun, ...rest } = beginning(ask, style)
  pieces.push(special("<|im_start|>"), plain("assistant\n"), ...begun)
  return { pieces, ...rest }
}
