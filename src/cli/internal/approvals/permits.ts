/** The rules of a folder, of all origins, and their rulings on calls. */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type * as CommandRule from "../../../backends/CommandRule.ts"
import type { Folder } from "../../../backends/HostFiles.ts"
import * as Middleware from "../../../core/Middleware.ts"
import type * as Ruling from "../../../core/Ruling.ts"
import type { Project } from "../config/items.ts"
import type { Places } from "../config/places.ts"
import { decodePermissions, hasContainment, readRecord, type Setting, type Settings } from "../config/settings.ts"
import { fail, type Failure } from "../failure.ts"
import { claudeRules } from "./claude.ts"
import { isIsolated, isOutside } from "./isolated.ts"
import { readKept } from "./keptFile.ts"
import { commandsFor, covers, type LearnedRules } from "./learned.ts"
import { type Call, isOpening, type Origin, parsePermission, type Permission, rule, type Tools } from "./permission.ts"
import { holdsHome, type Place, placeOf } from "./place.ts"

/** The settings of an organisation, in a folder that only administrators write. Only its rules count. */
const organisation = "/etc/deepagents/config.json"

const rulings = { allow: "allow", ask: "ask", deny: "refuse" } as const

type Lists = NonNullable<Settings["permissions"]>["value"]

interface Source extends Origin {
  readonly lists: Lists
  /** True for a file of another program, whose rules may mean nothing here. */
  readonly isForeign?: boolean
}

const isLists = (value: unknown): value is Lists => typeof value === "object" && value !== null

/** The rules of all origins: a later one takes nothing away from an earlier one. */
const sourcesOf = (setting: Setting | undefined): ReadonlyArray<Source> => {
  if (setting === undefined) return []
  const { from, value, where } = setting
  const own = from === "user" || from === "project" || from === "flag" ? [{ from, where, lists: value }] : []
  return [
    ...sourcesOf(setting.before),
    ...own.flatMap((one) => (isLists(one.lists) ? [{ ...one, lists: one.lists }] : []))
  ]
}

/** The commands that run in a sandbox. `unapproved`: the arguments of a call tell whether it runs there. */
export type Containment = "none" | "all" | "unapproved"

/** Tells whether a rule is for a tool that looks at files of the folder, or changes them. */
const isOfFiles = ({ commands, fits, hides, ruling }: Permission, tools: Tools): boolean =>
  commands === undefined &&
  ruling !== "allow" &&
  (hides !== undefined ||
    tools.some(
      ({ annotations, name }) =>
        annotations.openWorld !== true && annotations.runsCommands !== true && fits({ name, arguments: {} })
    ))

/** The rules of a folder, with their rulings. */
export interface Permits extends Place {
  readonly permissions: ReadonlyArray<Permission>
  /** The approvals for good of the project. */
  readonly kept: ReadonlyArray<LearnedRules>
  /** Globs of the files that rules hide. */
  readonly hidden: ReadonlyArray<string>
  /** The commands that a sandbox keeps in the folders, without a network. */
  readonly containment: Containment
  /** Tells whether a sandbox keeps the commands of a call there. */
  readonly isContained: (call: Call) => boolean
  /** True if rules refuse or ask about files, around which commands would go. */
  readonly restrictsFiles: boolean
  /** True while a folder that may be changed has the home of the person, or the program's own folders, in it. */
  readonly holdsHome: () => boolean
  /** Rules that are left out, and why. */
  readonly problems: ReadonlyArray<string>
  /** The ruling of rules and of approvals for good; `undefined` if the mode or a person decides. */
  readonly rule: (call: Call, learned?: ReadonlyArray<CommandRule.LearnedRule>) => Ruling.Ruling | undefined
}

/** Permits without a rule. */
export const makePermits = (
  folder: string,
  tools: Tools,
  permissions: ReadonlyArray<Permission> = [],
  {
    containment = "none",
    holdsHome = () => false,
    ...more
  }: {
    readonly problems: ReadonlyArray<string>
    readonly kept: ReadonlyArray<LearnedRules>
    readonly containment?: Containment
    readonly holdsHome?: () => boolean
  } = { problems: [], kept: [] },
  added?: () => ReadonlyArray<string>
): Permits => {
  const reading = permissions.filter(({ commands, ruling }) => commands === undefined && ruling !== "allow")
  const isHidden = (path: string): boolean =>
    reading.some(({ fits }) =>
      ["read_file", "edit_file"].some((name) => fits({ name, arguments: { file_path: path } }))
    )
  const where = placeOf(folder, isHidden, added)
  const commandTools = new Set(
    tools.flatMap(({ annotations, name }) => (annotations.runsCommands === true ? [name] : []))
  )
  return {
    permissions,
    where,
    hidden: permissions.flatMap(({ hides }) => hides ?? []),
    ...more,
    rule: (call, learned = []) => {
      const ruling = rule(permissions, call, { tools, where }, learned)
      // An isolated command may swap the file that a command outside reads.
      return ruling?._tag === "Allow" && ruling.by === "reads" && isOutside(call) ? undefined : ruling
    },
    isCommand: (tool) => commandTools.has(tool),
    containment,
    holdsHome,
    isContained: (call) =>
      commandTools.has(call.name) &&
      !holdsHome() &&
      (containment === "all" || (containment === "unapproved" && isIsolated(call))),
    restrictsFiles: permissions.some((one) => isOfFiles(one, tools))
  }
}

/** Reads the rules of an organisation. A misspelt setting fails: its rules would not count. */
export const readOrganisation = (file: string) =>
  Effect.flatMap(readRecord(file), (record) => decodePermissions(record, file))

/** Reads the rules of all origins. A text that is no rule fails with its place. */
export const readPermits = Effect.fnUntraced(function* (
  {
    folders,
    isolation,
    places,
    project,
    settings
  }: {
    readonly folders: { readonly list: () => ReadonlyArray<Folder> }
    readonly isolation: { readonly isOn: Effect.Effect<boolean> }
    readonly places: Places
    readonly project: Project
    readonly settings: Settings
  },
  tools: Tools
) {
  const decoded = yield* readOrganisation(organisation)
  const claude = yield* claudeRules(project)
  const sources: ReadonlyArray<Source> = [
    ...(decoded === undefined ? [] : [{ from: "organisation", where: organisation, lists: decoded } as const]),
    ...claude.sources,
    ...sourcesOf(settings.permissions)
  ]
  const context = { tools, folder: places.project }
  const foreign = [...claude.problems]
  const readRule = Effect.fnUntraced(function* (source: Source, list: keyof typeof rulings, text: string) {
    const { from, isForeign = false, where } = source
    const parsed = parsePermission(text, rulings[list], { from, where }, context)
    if (Result.isSuccess(parsed)) return [parsed.success]
    const place = from === "flag" ? `--${list}` : `${where}: permissions.${list}`
    if (!isForeign) return yield* fail("usage", `${place}: ${parsed.failure}`)
    // Its tools may be missing here: a name that is near would mislead.
    foreign.push(`${place}: ${parsed.failure.split(". ")[0] ?? ""}; it is left out`)
    return []
  })
  const all = yield* Effect.forEach(
    sources.flatMap((source) =>
      (["deny", "ask", "allow"] as const).flatMap((list) =>
        (source.lists[list] ?? []).map((text) => [source, list, text] as const)
      )
    ),
    ([source, list, text]): Effect.Effect<ReadonlyArray<Permission>, Failure> => readRule(source, list, text)
  )
  const permissions = all.flat()
  const isLeft = (one: Permission): boolean => one.from === "project" && isOpening(one)
  return makePermits(
    places.project,
    tools,
    permissions.filter((one) => !isLeft(one)),
    {
      problems: [...foreign, ...permissions.filter(isLeft).map(describeLeft)],
      kept: yield* readKept(places, placeOf(places.project).cwd),
      holdsHome: () =>
        [places.project, ...folders.list().flatMap(({ access, path }) => (access === "write" ? [path] : []))].some(
          (folder) => holdsHome(folder, [places.config, places.data])
        ),
      containment: hasContainment(settings) ? "all" : (yield* isolation.isOn) ? "unapproved" : "none"
    },
    () => folders.list().map(({ path }) => path)
  )
})

const describeLeft = ({ text, where }: Permission): string =>
  `${where}: the rule ${text} would let any program run, so it is left out; write it into your own settings if you mean it`

/** Tells whether a call only reads, by its command. */
export const isReading = (
  permits: Permits,
  { name, given }: Pick<Middleware.PreparedCall, "name" | "given">
): boolean => {
  if (!permits.isCommand(name)) return false
  const ruling = permits.rule({ name, arguments: given() })
  return ruling?._tag === "Allow" && ruling.by === "reads"
}

/** Tells whether a rule or an approval for good of the project lets a call run. */
export const isPermitted = (
  permits: Permits,
  { given, name }: Pick<Middleware.PreparedCall, "name" | "given">
): boolean => {
  const request = { toolName: name, arguments: given(), path: [] }
  const ruling = permits.rule({ name, arguments: request.arguments }, commandsFor(permits.kept, request))
  return ruling?._tag === "Allow" || (ruling === undefined && covers(permits.kept, request))
}

/** Answers the questions of tools themselves by the rules that allow, where nobody is asked during the run. */
export const settling = (permits: Permits): Middleware.Middleware =>
  Middleware.make({
    name: "PermissionAnswers",
    inherit: true,
    rulings: (_run, calls) =>
      Effect.sync(() =>
        calls.map((call) => {
          const ruling = permits.rule({ name: call.name, arguments: call.given() })
          return ruling?._tag === "Allow" && ruling.settles === true ? ruling : undefined
        })
      )
  })

/** Refuses and asks by the rules, for all calls of all agents. */
export const permitting = (permits: Permits): Middleware.AskingMiddleware =>
  Middleware.make({
    name: "PermissionRules",
    inherit: true,
    asks: true,
    rulings: (_run, calls) =>
      Effect.sync(() =>
        calls.map((call) => {
          const ruling = permits.rule({ name: call.name, arguments: call.given() })
          return ruling?._tag === "Allow" ? undefined : ruling
        })
      )
  })
