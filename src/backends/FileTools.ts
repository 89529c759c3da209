/**
 * The tools by which an agent works on files, and runs commands, over whatever backend is in context.
 *
 * `ls read_file write_file edit_file delete_file move_file glob grep` need a `Backend`. `execute` is there on demand
 * and needs a `Sandbox`: an agent that has it can't be run without one.
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Agent } from "effect-deepagents"
 * import { FileTools, MemoryBackend } from "effect-deepagents/backends"
 *
 * const writer = Agent.make({ name: "writer", prompt: "You keep notes.", tools: FileTools.make() })
 * const reader = Agent.make({
 *   name: "reader",
 *   prompt: "You answer from the notes.",
 *   tools: FileTools.make({ only: ["read_file", "glob", "grep"] })
 * })
 *
 * const notes = Agent.run(writer, "Note what we know of Ada.").pipe(
 *   Effect.andThen(Agent.run(reader, "What do we know?")),
 *   Effect.provide(MemoryBackend.layer())
 * )
 * ```
 */
import * as Duration from "effect/Duration"
import type { Backend } from "../core/Backend.ts"
import type { Format } from "../core/Document.ts"
import type { Sandbox } from "../core/Sandbox.ts"
import type { Tool } from "../core/Tool.ts"
import type { ToolContext } from "../core/ToolContext.ts"
import { execute } from "./internal/tools/execute.ts"
import { type Kit, makeKit, type Name, names } from "./internal/tools/kit.ts"
import { ls, readFile } from "./internal/tools/read.ts"
import { glob, grep } from "./internal/tools/search.ts"
import { deleteFile, editFile, moveFile, writeFile } from "./internal/tools/write.ts"

export { type Name, names } from "./internal/tools/kit.ts"

/**
 * `only` narrows the file tools to these; `edit_file` brings `read_file` along, since only a file that was read can be
 * edited. `documents` are the formats that `read_file` gives as text, with marks of pages and sheets
 * (`effect-deepagents/documents/Documents` has them); without it there are none.
 */
export interface Options {
  readonly only?: ReadonlyArray<Name> | undefined
  readonly documents?: ReadonlyArray<Format> | undefined
}

/**
 * Limits of commands: `timeout` if the model does not say (default 2 minutes), `maxTimeout` at most (default 1
 * hour).
 */
export interface ExecuteOptions {
  readonly timeout?: Duration.Input | undefined
  readonly maxTimeout?: Duration.Input | undefined
}

/** A tool for files. */
export type FileTool = Tool<Backend | ToolContext>

/** A tool for files or commands. */
export type SandboxTool = Tool<Backend | Sandbox | ToolContext>

const makers: { readonly [Key in Name]: (kit: Kit) => FileTool } = {
  ls,
  read_file: readFile,
  write_file: writeFile,
  edit_file: editFile,
  delete_file: deleteFile,
  move_file: moveFile,
  glob,
  grep
}

const limitsOf = (options: ExecuteOptions) => {
  const maxTimeout = Duration.fromInputUnsafe(options.maxTimeout ?? "1 hour")
  const timeout = Duration.fromInputUnsafe(options.timeout ?? "2 minutes")
  return { timeout: Duration.min(timeout, maxTimeout), maxTimeout }
}

/** Tools for files as they are offered together. They are values that no run changes, so agents share them. */
interface Offer {
  readonly kit: Kit
  readonly tools: ReadonlyArray<FileTool>
}

/** Offers that were made, by their names: as many as there are ways to choose from so few. */
const offers = new Map<string, Offer>()

const offerOf = ({ documents = [], only = names }: Options): Offer => {
  const wanted = new Set(only)
  if (wanted.has("edit_file")) wanted.add("read_file")
  const offered = names.filter((name) => wanted.has(name))
  const key = offered.join(" ")
  const known = documents.length === 0 ? offers.get(key) : undefined
  if (known !== undefined) return known
  const kit = makeKit(new Set(offered), documents)
  const made = { kit, tools: offered.map((name) => makers[name](kit)) }
  if (documents.length === 0) offers.set(key, made)
  return made
}

const makeTools = (
  options: Options & { readonly execute?: boolean | ExecuteOptions | undefined } = {}
): ReadonlyArray<SandboxTool> => {
  const { kit, tools } = offerOf(options)
  if (options.execute === undefined || options.execute === false) return [...tools]
  return [...tools, execute(kit, limitsOf(options.execute === true ? {} : options.execute))]
}

/**
 * Makes the tools.
 *
 * An agent can only edit or replace a file that it has seen: one that it has read (a part of it is enough) or written
 * itself, and that nobody has changed since. What it has seen is in its state, so it holds after a resume; a sub-agent
 * starts with nothing seen. Calls of one round on one file wait for each other. A failure is told to the model with
 * what it can do next.
 *
 * Images and PDFs are given to models with vision, recordings to all models: an adapter tells one that can't hear that
 * there was one. With `documents`, a document is given as text (`raw` gives it as it is), and is a source that can be
 * cited. Results are bounded, and say how to get the rest. `details` of a
 * result (for people, in `ToolCompleted`) have a `kind`: `read`, `write` and `edit` (with a `diff`), `delete`, `move`,
 * `listing`, `matches` or `command` (with the `exitCode`). A running command says its last lines in `ToolProgress`, as
 * `{ output }`, at most twice a second.
 */
export const make: {
  (options?: Options & { readonly execute?: false | undefined }): ReadonlyArray<FileTool>
  (options: Options & { readonly execute: true | ExecuteOptions }): ReadonlyArray<SandboxTool>
} = (options?: Options & { readonly execute?: boolean | ExecuteOptions | undefined }): ReadonlyArray<FileTool> =>
  // Without `execute` no tool needs a sandbox; with it, the second form says so.
  makeTools(options) as ReadonlyArray<FileTool>
