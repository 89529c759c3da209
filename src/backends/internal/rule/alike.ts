/** Approvals for good: of known programs they cover the action with known options, of other lines the line itself. */
import * as CommandRisk from "../../CommandRisk.ts"
import { isInside, staysInside, type Where } from "./places.ts"
import { findBy, harmless } from "./programs.ts"
import { behindRunners, everyCommand, isOption, isReadingCommand } from "./reading.ts"
import { type Command, parse, type Word } from "./strict.ts"

/**
 * A program of which "always" covers more than the line itself.
 *
 * - `depth`: the words that name the action
 * - `options`: options that may be added
 * - `operands`: files in the folders, texts that are never opened, or the same as before
 * - `installed`: the place of the tool. Without it, the tool would be downloaded
 */
interface Alike {
  readonly depth: number
  readonly options: RegExp
  readonly operands: "paths" | "texts" | "same"
  readonly installed?: string
}

/** Operands that are actions of a tool, and no files. */
const otherActions = /^(?:init|watch|dev|bench|related|list)$/

const entry = (depth: number, options: string, operands: Alike["operands"] = "paths", installed?: string): Alike => ({
  depth,
  options: new RegExp(`^(?:${options})$`),
  operands,
  ...(installed === undefined ? {} : { installed })
})

const lintOptions: { readonly [tool: string]: string } = {
  tsc: "--noEmit|-p|--pretty|--skipLibCheck",
  eslint: "--fix|--quiet|--ext|--max-warnings(?:=\\d+)?",
  prettier: "--check|--write|-c|-w",
  vitest: "run|-t|--run|--reporter=(?:verbose|dot|default)|--coverage|--bail=\\d+",
  jest: "-t|--coverage|--verbose|-i|--runInBand|--bail",
  oxlint: "--fix|--quiet",
  biome: "--write"
}

const python: { readonly [tool: string]: string } = {
  pytest: "-k|-x|-v+|-q|-s|-m|--lf|--ff|-n|--tb=\\w+|--maxfail=\\d+|--durations=\\d+",
  mypy: "--strict",
  ruff: "--fix|--quiet|--check"
}

const scripts =
  "--|--silent|-s|--if-present|--grep|-g|-t|--watch=false|--run|--coverage|--bail|--verbose|--testNamePattern"

const table: ReadonlyMap<string, Alike> = new Map([
  ["npm test", entry(2, scripts)],
  ["npm run", entry(3, scripts)],
  ["pnpm test", entry(2, "--|--silent")],
  ["pnpm run", entry(3, "--")],
  ["yarn test", entry(2, "--")],
  ["yarn run", entry(3, "--")],
  ["bun test", entry(2, "-t|--bail|--coverage")],
  ["node --test", entry(2, "--test-only|--test-name-pattern(?:=.*)?|--test-reporter=(?:spec|tap|dot)")],
  ...Object.entries(lintOptions).flatMap(([tool, options]) => [
    [tool, entry(1, options)] as const,
    [`npx ${tool}`, entry(2, options, "paths", `node_modules/.bin/${tool}`)] as const
  ]),
  ...Object.entries(python).flatMap(([tool, options]) => [
    [tool, entry(1, options)] as const,
    [`uv run ${tool}`, entry(3, options, "paths", `.venv/bin/${tool}`)] as const
  ]),
  ["cargo test", entry(2, "--|--lib|--workspace|-p|--release|--nocapture|--all-features|-q|--no-run|--exact|--test")],
  ["cargo build", entry(2, "--release|-p|--workspace|--all-features")],
  ["cargo check", entry(2, "-p|--workspace|--all-targets")],
  ["cargo clippy", entry(2, "-p|--workspace|--all-targets")],
  ["cargo fmt", entry(2, "--check|--all")],
  ["go test", entry(2, "-v|-run|-race|-count=\\d+|-short|-cover|-timeout|-bench")],
  ["go build", entry(2, "-v|-race")],
  ["go vet", entry(2, "")],
  ["make", entry(2, "-j\\d*|-s|-k", "same")],
  ["git add", entry(2, "-A|-u|--all|--")],
  ["git commit", entry(2, "-m|-a|-am|-q", "texts")],
  ["git fetch", entry(2, "-p|--prune|--tags", "same")],
  ["mkdir", entry(1, "-p|-v")],
  ["touch", entry(1, "")]
])

/** An approval for good: of the line itself, or of the actions of its commands. */
export interface LearnedLine {
  readonly kind: "same" | "alike"
  readonly line: string
}

interface Action {
  readonly key: string
  readonly terms: Alike
  readonly rest: ReadonlyArray<Word>
  readonly command: Command
}

/** The action of a command that the table knows. */
const actionOf = (command: Command, where: Where): Action | undefined => {
  const words = behindRunners(command)
  const texts = words?.map(({ text }) => text) ?? []
  const [length, terms] = findBy(table, texts) ?? [0, undefined]
  if (words === undefined || terms === undefined) return undefined
  const { depth, installed } = terms
  // `make -j4 test`: the options may come before the words that name the action.
  const named = words.slice(length).filter(({ text }) => !isOption(text))
  const own = named.slice(0, depth - length)
  if (own.length < depth - length && texts[0] !== "make") return undefined
  if (own.some(({ isPlain, text }) => !isPlain || text.includes("="))) return undefined
  const first = words.findIndex(({ text }) => isOption(text))
  if (texts[0] !== "make" && first !== -1 && first >= length && first < depth) return undefined
  if (installed !== undefined && !isThere(`${where.cwd}/${installed}`, where)) return undefined
  return {
    key: [...texts.slice(0, length), ...own.map(({ text }) => text)].join(" "),
    terms,
    rest: words.slice(length).filter((word) => !own.includes(word)),
    command
  }
}

const isThere = (path: string, { look }: Where): boolean => (look?.(path) ?? []).length > 0

const actionsOf = (line: string, where: Where): ReadonlyArray<Action> =>
  (parse(line) ?? []).flatMap((command) => actionOf(command, where) ?? [])

/** Learns from an approved line. */
export const learn = (line: string, where: Where): LearnedLine => {
  const commands = parse(line)
  const isKnown =
    commands !== undefined &&
    actionsOf(line, where).length > 0 &&
    everyCommand(
      commands,
      where,
      (command, going) => isReadingCommand(command, where, going) || actionOf(command, where) !== undefined
    )
  return { kind: isKnown ? "alike" : "same", line }
}

const kindsOf = (line: string): ReadonlyArray<string> =>
  CommandRisk.of(line).map(({ detail, kind }) => (kind === "reaches" ? `${kind} ${detail}` : kind))

const textsOf = (words: ReadonlyArray<Word>): ReadonlyArray<string> => words.map(({ text }) => text)

/** Tells whether an approved action covers another. */
const isNoMore = (now: Action, before: Action, place: Where, cwds: ReadonlyArray<string>): boolean => {
  // Folders beside the working folder may be there to be read only.
  const where = { ...place, folders: [place.cwd] }
  if (now.key !== before.key) return false
  const approvedTexts = new Set(textsOf(before.rest))
  const { command, rest, terms } = now
  const options = rest.filter(({ text }) => isOption(text))
  const operands = rest.filter(({ text }) => !isOption(text) && !approvedTexts.has(text))
  return (
    options.every(({ isPlain, text }) => isPlain && (approvedTexts.has(text) || terms.options.test(text))) &&
    !rest.some(({ leads }) => leads) &&
    command.assigns.every(
      ([name, value]) =>
        harmless.has(name) || before.command.assigns.some(([one, was]) => one === name && was === value)
    ) &&
    command.writes.every(({ text }) => text === "/dev/null" || textsOf(before.command.writes).includes(text)) &&
    command.reads.every(({ text }) => cwds.every((cwd) => isInside(text, true, where, cwd))) &&
    !operands.some(({ text }) => terms.operands !== "texts" && otherActions.test(text)) &&
    !operands.some(({ text }) => terms.operands !== "texts" && /^[A-Za-z_]\w*=/.test(text)) &&
    (terms.operands === "texts" ||
      (terms.operands === "paths" ? operands.every((word) => staysInside(word, where, cwds)) : operands.length === 0))
  )
}

/** Tells whether approvals for good cover a line. Several may cover a line of several commands. */
export const isCovered = (learned: ReadonlyArray<LearnedLine>, line: string, where: Where): boolean => {
  if (learned.some((one) => one.line === line)) return true
  const commands = parse(line)
  const alike = learned.filter(({ kind }) => kind === "alike")
  if (commands === undefined || alike.length === 0) return false
  const risks = new Set(alike.flatMap((one) => kindsOf(one.line)))
  if (!kindsOf(line).every((kind) => risks.has(kind))) return false
  const approved = alike.flatMap((one) => actionsOf(one.line, where))
  return everyCommand(commands, where, (command, going) => {
    if (isReadingCommand(command, where, going)) return true
    const action = actionOf(command, where)
    // In another folder, git has other settings, and a package another tool of that name.
    if (action === undefined || (going.hasMoved && /^(?:git|npx|uv) /.test(action.key))) return false
    return approved.some((before) => isNoMore(action, before, where, going.cwds))
  })
}

/** Describes an approval for good. */
export const describe = (learned: LearnedLine, where: Where): string => {
  const keys = [...new Set(actionsOf(learned.line, where).map(({ key }) => `\`${key} …\``))]
  return learned.kind === "alike" && keys.length > 0
    ? `${keys.join(", ")} with files in the folder`
    : `exactly \`${learned.line}\``
}
