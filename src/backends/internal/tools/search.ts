/** The tools `glob` and `grep`. */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Backend from "../../../core/Backend.ts"
import type { Json } from "../../../core/Json.ts"
import * as Tool from "../../../core/Tool.ts"
import * as ToolOutput from "../../../core/ToolOutput.ts"
import { defined } from "../../../support/json/defined.ts"
import * as Path from "../files/path.ts"
import { defaultLimit, maxContext } from "../search/search.ts"
import { maxCharacters, renderGlob, renderGrep } from "../text/render.ts"
import type { Kit } from "./kit.ts"
import { listingDetails, maxDetails } from "./text.ts"

/** The most files or lines that a search gives. */
const maxCount = 10_000

const clampNumber = (value: number | undefined, least: number, most: number, otherwise: number): number =>
  value === undefined ? otherwise : Math.min(most, Math.max(least, Math.floor(value)))

const ignored = Schema.optionalKey(
  Schema.Boolean.annotate({
    description: "Also look at what ignore files name (.gitignore) and in .git; false if left out"
  })
)

const maxCountParameter = Schema.optionalKey(
  Schema.Finite.annotate({ description: `How many to give, at most ${maxCount}; ${defaultLimit} if left out` })
)

export const glob = (kit: Kit): Tool.Tool<Backend.Backend> =>
  Tool.make("glob", {
    description: [
      'Finds files by a pattern of their paths: "*" and "?" stay in one name, "**" crosses directories, "{a,b}", "[a-z]" and "[!a]" work.',
      'A pattern without "/" matches names at any depth ("*.md"), one with "/" begins at path ("src/**/*.ts").',
      `Gives paths in their order, at most ${maxCharacters} characters.`
    ].join(" "),
    parameters: {
      pattern: Schema.String.annotate({ description: "The pattern" }),
      path: Schema.optionalKey(
        Schema.String.annotate({ description: "The directory to look in; the working directory if left out" })
      ),
      max_count: maxCountParameter,
      include_ignored: ignored
    },
    annotations: { readOnly: true, idempotent: true, addresses: [] },
    execute: Effect.fnUntraced(function* ({ include_ignored, max_count, path: inputPath, pattern }) {
      const backend = yield* Backend.Backend
      const path = inputPath ?? Path.workingFolder(backend.paths)
      const listing = yield* backend.glob({
        pattern,
        path,
        limit: clampNumber(max_count, 1, maxCount, defaultLimit),
        ignored: include_ignored === true
      })
      return ToolOutput.make(renderGlob(listing), { details: listingDetails(path, listing) })
    }, kit.tell)
  })

const modes = { files_with_matches: "files", content: "content", count: "count" } as const

const matchDetails = ({ files, truncated }: Backend.GrepResult): { readonly [key: string]: Json } => {
  let room = maxDetails
  const fileDetails = files.slice(0, maxDetails).map(({ count, matches, path }) => {
    const lines = matches.slice(0, room).map(({ line, text }) => ({ line, text }))
    room -= lines.length
    return { path, count, lines }
  })
  return defined({ kind: "matches", count: files.length, files: fileDetails, truncated })
}

export const grep = (kit: Kit): Tool.Tool<Backend.Backend> =>
  Tool.make("grep", {
    description: [
      "Finds lines of files by a text, taken literally, or with regex by a regular expression (RE2 syntax: no look-around, no back-references).",
      "A match is within one line. Files that are not text are not looked into.",
      `Gives results in the order of paths, at most ${maxCharacters} characters.`
    ].join(" "),
    parameters: {
      pattern: Schema.String.annotate({ description: "The text, or with regex the regular expression" }),
      path: Schema.optionalKey(
        Schema.String.annotate({
          description: "The directory to look in, or a file; the working directory if left out"
        })
      ),
      glob: Schema.optionalKey(
        Schema.String.annotate({
          description: 'Which files to look into, for example "*.ts" or "src/**"; all if left out'
        })
      ),
      output_mode: Schema.optionalKey(
        Schema.Literals(["files_with_matches", "content", "count"]).annotate({
          description:
            "files_with_matches (if left out): the paths; content: the lines with their numbers; count: how many lines match in each file"
        })
      ),
      regex: Schema.optionalKey(
        Schema.Boolean.annotate({ description: "Whether pattern is a regular expression; false if left out" })
      ),
      ignore_case: Schema.optionalKey(
        Schema.Boolean.annotate({ description: "Whether upper and lower case are the same; false if left out" })
      ),
      context: Schema.optionalKey(
        Schema.Finite.annotate({
          description: `How many lines around each match come with it in output_mode content, at most ${maxContext}; 0 if left out`
        })
      ),
      max_count: maxCountParameter,
      include_ignored: ignored
    },
    annotations: { readOnly: true, idempotent: true, addresses: [] },
    execute: Effect.fnUntraced(function* (args) {
      const backend = yield* Backend.Backend
      const query: Backend.GrepQuery = {
        pattern: args.pattern,
        path: args.path ?? Path.workingFolder(backend.paths),
        mode: modes[args.output_mode ?? "files_with_matches"],
        regex: args.regex === true,
        ignoreCase: args.ignore_case === true,
        context: clampNumber(args.context, 0, maxContext, 0),
        limit: clampNumber(args.max_count, 1, maxCount, defaultLimit),
        ignored: args.include_ignored === true,
        glob: args.glob
      }
      const result = yield* backend.grep(query)
      return ToolOutput.make(renderGrep(result, query), { details: matchDetails(result) })
    }, kit.tell)
  })
