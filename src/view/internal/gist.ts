/** Calls and results of tools in a few words. */
import { isObject, type Json, type JsonObject, stringify } from "../../core/Json.ts"
import { describeArguments } from "../../core/ToolCall.ts"
import { clean, cleanLine } from "../../support/text/clean.ts"
import { boundaryAfter, cut } from "../../support/text/text.ts"

const longest = 400

/** Arguments that describe a call, the most telling first. */
const telling = ["command", "file_path", "path", "pattern", "query", "url", "question"]

/** Gives the gist of a call, on one line. */
export const gist = (args: JsonObject): string => {
  const agent = args["subagent_type"]
  const task = args["description"]
  if (typeof agent === "string" && typeof task === "string") return cut(cleanLine(`${agent}: ${task}`), longest)
  if (Array.isArray(args["todos"])) return `${args["todos"].length} items`
  const [about] = telling.flatMap((name) => (typeof args[name] === "string" ? [args[name]] : []))
  return cut(cleanLine(about ?? describeArguments(args)), longest)
}

/** The longest result that is kept, in characters. */
const keptOutput = 4_000

/** A result for people: a summary on one line, a diff of its changes, the beginning of its text. */
interface Summary {
  readonly summary: string
  readonly diff: string | undefined
  readonly output: string
  /** The last lines of a command's output. */
  readonly end?: ReadonlyArray<string>
}

/** The most lines of a command's output that are kept for the screen. */
const keptLines = 40

/** The line in which `execute` says how a command ended. */
const verdict = /^\[(Command (succeeded|failed)|No output|process p\d)/

/** The last lines of a command's output. */
const endOf = (output: string): ReadonlyArray<string> =>
  output
    .split("\n")
    .filter((line) => line.trim() !== "" && !verdict.test(line))
    .slice(-keptLines)

const number = (value: Json | undefined): number => (typeof value === "number" ? value : 0)
const text = (value: Json | undefined): string => (typeof value === "string" ? cleanLine(value) : "")

const summaryOf = (details: JsonObject): string | undefined => {
  switch (text(details["kind"])) {
    case "read":
      return details["totalLines"] === undefined
        ? `${number(details["size"])} bytes`
        : `lines ${number(details["startLine"])}–${number(details["endLine"])} of ${number(details["totalLines"])}`
    case "command":
      return typeof details["exitCode"] === "number"
        ? `exit code ${details["exitCode"]}${leftOf(details)}`
        : "ended without an exit code"
    case "process":
      return `${text(details["id"])} ${details["running"] === true ? "runs in the background" : typeof details["exitCode"] === "number" ? `ended with exit code ${details["exitCode"]}` : "was ended"}`
    case "listing":
      return `${number(details["count"])} found`
    case "matches":
      return details["count"] === 1 ? "1 file matches" : `${number(details["count"])} files match`
    case "write":
      return `${details["created"] === true ? "created" : "written"}${changes(details)}`
    case "edit":
      return `edited${changes(details)}`
    case "delete":
      return "deleted"
    case "move":
      return `moved to ${text(details["to"])}`
    case "patch":
      return countFiles(details["files"])
    default:
      return undefined
  }
}

const countFiles = (files: Json | undefined): string => {
  const { length } = Array.isArray(files) ? files : []
  return length === 1 ? "1 file changed" : `${length} files changed`
}

const leftOf = ({ left }: JsonObject): string =>
  Array.isArray(left) && left.length > 0 ? `; it left behind ${left.map(text).join(", ")}, now ended` : ""

const changes = (details: JsonObject): string => {
  const { added, removed } = details
  return typeof added === "number" && typeof removed === "number" ? ` (+${added} −${removed})` : ""
}

const diffOf = (details: JsonObject): string | undefined => {
  if (typeof details["diff"] === "string") return clean(details["diff"])
  const files = details["files"]
  if (details["kind"] !== "patch" || !Array.isArray(files)) return undefined
  const diffs = files.flatMap((file) =>
    isObject(file) && typeof file["diff"] === "string" ? [`${text(file["path"])}\n${file["diff"]}`] : []
  )
  return diffs.length === 0 ? undefined : clean(diffs.join("\n"))
}

/** Summarises the result of a call. */
export const summarise = (result: string, details: Json | undefined): Summary => {
  const facts = isObject(details) ? details : {}
  const isCommand = facts["kind"] === "command" || facts["kind"] === "process"
  const start = isCommand ? boundaryAfter(result, Math.max(0, result.length - keptOutput)) : 0
  const output = clean(isCommand ? result.slice(start) : cut(result, keptOutput))
  const first = output.split("\n").find((line) => line.trim() !== "") ?? ""
  return {
    summary: summaryOf(facts) ?? cut(cleanLine(first), 200),
    diff: diffOf(facts),
    output,
    ...(isCommand ? { end: endOf(output) } : {})
  }
}

/** Gives the last output of a running tool. */
export const progressOf = (progress: Json): string => {
  const value = isObject(progress) ? (progress["output"] ?? progress["message"] ?? progress["phase"]) : progress
  return clean(typeof value === "string" ? value.slice(-2_000) : stringify(value ?? progress).slice(0, 400)).trimEnd()
}
