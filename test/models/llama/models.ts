import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect, Stream } from "effect"
import { ChatModel, type Json, Message } from "effect-deepagents"
import * as LlamaChatModel from "effect-deepagents/models/local/LlamaChatModel"
import { buildTinyGguf } from "./tiny-gguf.mjs"

/** A model to use in the place of the generated one: the suite is the same. */
export const real = process.env["DEEPAGENTS_GGUF"]

const folder = mkdtempSync(join(tmpdir(), "tiny-gguf-"))
process.on("exit", () => rmSync(folder, { recursive: true, force: true }))

/** Writes a file to load a model from. */
export const file = (name: string, bytes: Uint8Array): string => {
  const path = join(folder, name)
  writeFileSync(path, bytes)
  return path
}

/** Ends its turns. */
const plain = real ?? file("plain.gguf", buildTinyGguf({ endBias: 3, template: "chatml" }))

/** Never ends a turn by itself. */
export const endless = file("endless.gguf", buildTinyGguf({ endBias: -12, template: "chatml" }))

/** Opens a tool call in nearly every turn, in the format of its own template. */
export const caller = file("caller.gguf", buildTinyGguf({ toolBias: 6, ctx: 8192 }))

/** A layer for tests: one thread, or a small model runs hundreds of times slower; some variety, so that it ends. */
export const layer = (options?: Partial<Parameters<typeof LlamaChatModel.layer>[0]>) =>
  LlamaChatModel.layer({
    model: plain,
    gpu: false,
    threads: 1,
    contextSize: 1024,
    maxTokens: 60,
    temperature: 0.7,
    seed: 7,
    ...options
  })

export const request = (
  messages: ReadonlyArray<Message.Message> | string,
  options?: Partial<ChatModel.ModelRequest>
): ChatModel.ModelRequest => ({
  messages: typeof messages === "string" ? [Message.human(messages)] : messages,
  systemPrompt: "You are brief.",
  tools: [],
  toolChoice: "auto",
  parameters: {},
  cacheHints: [],
  purpose: ChatModel.turnPurpose,
  ...options
})

export const definition = (name: string, parameters: Json.JsonObject): ChatModel.ToolDefinition => ({
  name,
  description: `Does ${name}`,
  parameters,
  annotations: {}
})

/** A session with the model of the context, as the loop opens it. */
export const session = Effect.flatMap(ChatModel.ChatModel, ChatModel.open)

const doneOf = (parts: ReadonlyArray<ChatModel.TurnPart>): Message.AiMessage => {
  const last = parts.at(-1)
  return last?._tag === "TurnDone" ? last.message : Message.ai("there was no end")
}

/** All parts of one turn, and its message. */
export const turn = (line: ChatModel.ModelSession, asked: ChatModel.ModelRequest) =>
  Effect.map(Stream.runCollect(line.nextTurn(asked)), (parts) => ({ parts, message: doneOf(parts) }))
