/** The gate of all operations: rules on given paths and on their real places, asks, and lets operations go on. */
import * as Effect from "effect/Effect"
import * as Semaphore from "effect/Semaphore"
import type * as Backend from "../../../core/Backend.ts"
import * as BackendError from "../../../core/BackendError.ts"
import * as Ruling from "../../../core/Ruling.ts"
import * as Path from "../files/path.ts"
import type { Access, Action, FileOperation, Rules } from "./model.ts"
import { askAbout, Granted } from "./question.ts"
import { decide, isRefusal, noReason, overlaps } from "./rules.ts"

export type Failing<A> = Effect.Effect<A, BackendError.BackendError>

/** The need of an operation: the given path, and the normal one. */
export interface Need {
  readonly operation: FileOperation
  readonly inputPath: string
  readonly path: string
  /** True for an operation on a link itself, not only on its target. */
  readonly entry?: boolean | undefined
  /**
   * Set for a search below a directory. The directory need not be allowed itself if something below it could be. Nobody
   * is asked about `names`.
   */
  readonly looking?: "names" | "contents" | undefined
}

/** Needs that are granted or refused together. */
export interface Subject {
  readonly needs: ReadonlyArray<Need>
  /** If there is a directory at this path, all that could be below the paths is needed too. */
  readonly tree?: string | undefined
}

/** The outcome of the gate. */
export interface Pass {
  /** The reasons to refuse subjects, in their order; `undefined` for allowed subjects. */
  readonly refusals: ReadonlyArray<BackendError.BackendError | undefined>
  /** The accesses that somebody approved. */
  readonly approved: ReadonlyArray<Access>
}

/** Holds rules against a backend. */
export interface Guard {
  readonly paths: Backend.Paths | undefined
  /** Runs an operation on its allowed subjects. */
  readonly authorise: <A>(
    operation: Operation,
    subjects: ReadonlyArray<Subject>,
    run: (pass: Pass) => Failing<A>
  ) => Failing<A>
  /** Finds the real places of paths; `undefined` if the backend refuses the path. */
  readonly real: (operation: string, paths: ReadonlyArray<string>) => Failing<ReadonlyArray<string | undefined>>
}

/** An operation, and the action to ask about. `alone` is set if it changes the targets of paths. */
export interface Operation {
  readonly name: string
  readonly action?: Action | undefined
  readonly alone?: boolean | undefined
}

interface Finding {
  readonly need: Need
  readonly path: string
  readonly ruling: Ruling.Ruling
  readonly below: boolean
}

interface AskedAccess {
  readonly accesses: ReadonlyArray<Access>
  readonly answer: Ruling.Allow | Ruling.Refuse
}

export const needOf = (
  operation: FileOperation,
  inputPath: string,
  path: string,
  more?: Pick<Need, "entry" | "looking">
): Need => ({ operation, inputPath, path, ...more })

/** Runs an operation at the normal form of a path. */
export const at = <A>(
  { paths }: Guard,
  operation: string,
  inputPath: string,
  run: (path: string) => Failing<A>
): Failing<A> => Effect.flatMap(Effect.fromResult(Path.resolve(operation, inputPath, paths)), run)

/** Runs an operation on one subject, or fails with the reason of its refusal. */
export const authoriseOne = <A>(
  guard: Guard,
  operation: Operation,
  subject: Subject,
  run: (approved: ReadonlyArray<Access>) => Failing<A>
): Failing<A> =>
  guard.authorise(operation, [subject], ({ approved, refusals: [refused] }) =>
    refused === undefined ? run(approved) : Effect.fail(refused)
  )

const isRefused = ({ ruling }: Finding): boolean => isRefusal(ruling)

const accessesOf = (findings: ReadonlyArray<Finding>): ReadonlyArray<Access> =>
  findings.flatMap(({ need: { operation }, path, ruling }) =>
    ruling._tag === "Ask" ? [{ operation, path, ruling }] : []
  )

const keyOf = ({ operation, path, ruling }: Access): string =>
  JSON.stringify([operation, path, ruling.by, ruling.terms])

const refusal = (operation: Operation, inputPath: string, detail: string): BackendError.BackendError =>
  BackendError.make(operation.name, inputPath, { _tag: "PermissionDenied" }, { detail })

const detailOf = ({ below, need: { operation }, ruling }: Finding): string => {
  const why = ruling._tag !== "Refuse" || ruling.reason === noReason ? "" : `: ${ruling.reason}`
  return below
    ? `rules don't allow to ${operation} everything that could be below this directory; go on with single files${why}`
    : `rules don't allow to ${operation} here${why}`
}

/** The reason to refuse a subject. For a refused path it is the same whether something is there or not. */
const refusalOf = (
  operation: Operation,
  subject: Subject,
  findings: ReadonlyArray<Finding>,
  question: AskedAccess | undefined
): BackendError.BackendError | undefined => {
  const refused = findings.find(isRefused)
  if (refused !== undefined) return refusal(operation, refused.need.inputPath, detailOf(refused))
  const accesses = accessesOf(findings)
  if (accesses.length === 0) return undefined
  const inputPath = subject.needs[0]?.inputPath ?? "/"
  if (question === undefined) return refusal(operation, inputPath, "this needs approval")
  if (question.answer._tag === "Refuse") return refusal(operation, inputPath, question.answer.reason)
  const keys = new Set(question.accesses.map(keyOf))
  // Otherwise something moved while somebody decided, and the answer is about other places.
  return accesses.every((access) => keys.has(keyOf(access)))
    ? undefined
    : BackendError.make(operation.name, inputPath, { _tag: "Conflict" })
}

/** Many operations share the lock, or one is alone. A waiting exclusive operation holds back newcomers. */
const makeLock = () => {
  const everybody = 2 ** 30
  const gate = Semaphore.makeUnsafe(1)
  const inside = Semaphore.makeUnsafe(everybody)
  return {
    shared: <A>(effect: Failing<A>): Failing<A> =>
      Effect.andThen(gate.withPermit(Effect.void), inside.withPermits(1)(effect)),
    alone: <A>(effect: Failing<A>): Failing<A> => gate.withPermit(inside.withPermits(everybody)(effect)),
    open: <A>(effect: Failing<A>): Failing<A> => effect
  }
}

export const make = (backend: Backend.Service, rules: Rules): Guard => {
  const lock = makeLock()

  const real: Guard["real"] = (operation, paths) => {
    const [first] = paths
    if (backend.realPaths === undefined || first === undefined) return Effect.succeed(paths)
    const unknown = { detail: "it is not known where links lead" }
    return backend.realPaths(paths).pipe(
      Effect.mapError((error) => BackendError.at(error, operation, error.path)),
      Effect.filterOrFail(
        (answers) => answers.length === paths.length,
        () => BackendError.make(operation, first, { _tag: "Unavailable" }, unknown)
      )
    )
  }

  const findingOf = (need: Need, path: string): Finding => {
    const { looking, operation } = need
    const ruling = decide(rules, operation, path)
    const isFree =
      (looking === "names" && ruling._tag === "Ask") ||
      (looking !== undefined && isRefusal(ruling) && !overlaps(rules, operation, path).every(isRefusal))
    return { need, path, ruling: isFree ? Ruling.allow("search") : ruling, below: false }
  }

  const findingsBelow = (need: Need, path: string): ReadonlyArray<Finding> => {
    const rulings = overlaps(rules, need.operation, path)
    const refused = rulings.find(isRefusal)
    const against = refused === undefined ? rulings.filter(({ _tag }) => _tag === "Ask") : [refused]
    return against.map((ruling) => ({ need, path, ruling, below: true }))
  }

  const isDirectory = (operation: string, path: string): Failing<boolean> =>
    backend.ls(path).pipe(
      Effect.as(true),
      Effect.mapError((error) => BackendError.at(error, operation, error.path)),
      Effect.catchReason("BackendError", "NotDirectory", () => Effect.succeed(false)),
      Effect.catchReason("BackendError", "NotFound", () => Effect.succeed(false)),
      Effect.catchReason("BackendError", "OutsideRoot", () => Effect.succeed(false)),
      // A place that nobody may look into is a directory.
      Effect.catchReason("BackendError", "PermissionDenied", () => Effect.succeed(true))
    )

  /** Rules on each subject. Looks at nothing for a subject whose given path is refused. */
  const examine = Effect.fnUntraced(function* (operation: Operation, subjects: ReadonlyArray<Subject>) {
    const all = subjects.map(({ needs }) => needs.map((need) => findingOf(need, need.path)))
    const open = subjects.flatMap((subject, index) => {
      const findings = all[index] ?? []
      return findings.some(isRefused) ? [] : [{ subject, findings }]
    })
    const needed = open.flatMap(({ subject: { needs } }) =>
      needs.flatMap(({ entry, path }) => (entry === true ? [path, Path.parent(path)] : [path]))
    )
    const leading = Array.from(new Set(needed))
    const reached = yield* real(operation.name, leading)
    const realPaths = new Map(leading.map((path, index) => [path, reached[index]]))
    /** The other names of a path: its target, and the real place of a link itself. */
    const namesOf = ({ entry, path }: Need): ReadonlyArray<string> => {
      const folder = entry === true && path !== "/" ? realPaths.get(Path.parent(path)) : undefined
      const names = [realPaths.get(path), folder === undefined ? undefined : Path.join(folder, Path.basename(path))]
      return names.filter((name) => name !== undefined && name !== path).map(String)
    }
    for (const { findings, subject } of open) {
      const { needs, tree } = subject
      for (const need of needs) findings.push(...namesOf(need).map((path) => findingOf(need, path)))
      if (tree === undefined || findings.some(isRefused)) continue
      const below = needs.flatMap((need) => [need.path, ...namesOf(need)].flatMap((path) => findingsBelow(need, path)))
      if (below.length > 0 && (yield* isDirectory(operation.name, tree))) findings.push(...below)
    }
    return all
  })

  const authorise: Guard["authorise"] = (operation, subjects, run) => {
    const { action, alone } = operation
    // Without links, a path leads to the same place all the time.
    const locked = alone === true ? lock.alone : backend.realPaths === undefined ? lock.open : lock.shared
    const passOf = (all: ReadonlyArray<ReadonlyArray<Finding>>, question: AskedAccess | undefined): Pass => ({
      refusals: subjects.map((subject, index) => refusalOf(operation, subject, all[index] ?? [], question)),
      approved: question?.answer._tag === "Allow" ? question.accesses : []
    })
    return Effect.gen(function* () {
      const granted = (yield* Granted).flatMap((one) => (one.rules === rules ? one.accesses : []))
      const grantedKeys = new Set(granted.map(keyOf))
      const first = yield* locked(
        Effect.gen(function* () {
          const all = yield* examine(operation, subjects)
          const asking = all
            .flatMap((findings) => (findings.some(isRefused) ? [] : accessesOf(findings)))
            .filter((access) => !grantedKeys.has(keyOf(access)))
          const before: AskedAccess | undefined =
            granted.length === 0 ? undefined : { accesses: granted, answer: Ruling.allow("granted") }
          return action !== undefined && asking.length > 0
            ? { action, asking }
            : { done: yield* run(passOf(all, before)) }
        })
      )
      if ("done" in first) return first.done
      const accesses = Array.from(new Map(first.asking.map((access) => [keyOf(access), access])).values())
      // No lock is held while somebody decides, so the places are looked at again.
      const answer = yield* askAbout(first.action, accesses)
      return yield* locked(
        Effect.flatMap(examine(operation, subjects), (all) =>
          run(passOf(all, { accesses: [...granted, ...accesses], answer }))
        )
      )
    })
  }

  return { paths: backend.paths, authorise, real }
}
