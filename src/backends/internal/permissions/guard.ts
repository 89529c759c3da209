/** The gate of all operations: decides about paths as they are given and as they really are, asks, and lets go on. */
import * as Effect from "effect/Effect"
import * as Semaphore from "effect/Semaphore"
import type * as Backend from "../../../core/Backend.ts"
import * as BackendError from "../../../core/BackendError.ts"
import * as Path from "../files/path.ts"
import { Approver, Granted } from "./approval.ts"
import type { Access, Action, Answer, Decision, FileOperation, Policy } from "./model.ts"
import * as Policies from "./policy.ts"

type Failing<A> = Effect.Effect<A, BackendError.BackendError>

/** The need of an operation at a path: as it was given, and a normal one. */
export interface Need {
  readonly operation: FileOperation
  readonly given: string
  readonly path: string
  /** The operation is on a link itself, not only on what it leads to. */
  readonly entry?: boolean | undefined
  /**
   * The subject of a search below a directory, which need not be allowed itself if something below it could be. Nobody
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
  /** The reasons to refuse subjects, in their order; nothing for one that is allowed. */
  readonly refusals: ReadonlyArray<BackendError.BackendError | undefined>
  /** The accesses that were asked about and approved. */
  readonly approved: ReadonlyArray<Access>
}

/** Holds rules against a backend. */
export interface Guard {
  /** Runs an operation on what is allowed of its subjects. */
  readonly authorise: <A>(
    operation: Operation,
    subjects: ReadonlyArray<Subject>,
    run: (pass: Pass) => Failing<A>
  ) => Failing<A>
  /** Finds where paths really lead; `undefined` for one where the backend refuses to go. */
  readonly real: (operation: string, paths: ReadonlyArray<string>) => Failing<ReadonlyArray<string | undefined>>
}

/** An operation, and how to ask about it. `alone` is for one that changes where paths lead. */
export interface Operation {
  readonly name: string
  readonly action?: Action | undefined
  readonly alone?: boolean | undefined
}

interface Finding {
  readonly need: Need
  readonly path: string
  readonly decision: Decision
  readonly below: boolean
}

interface Asked {
  readonly accesses: ReadonlyArray<Access>
  readonly answer: Answer
}

const isDenied = ({ decision }: Finding): boolean => decision.mode === "deny"

const accessesOf = (findings: ReadonlyArray<Finding>): ReadonlyArray<Access> =>
  findings.flatMap(({ decision: { mode, rule }, need: { operation }, path }) =>
    mode === "ask" && rule !== undefined ? [{ operation, path, rule }] : []
  )

const keyOf = ({ operation, path }: Access): string => `${operation} ${path}`

const refusal = (operation: Operation, given: string, detail: string): BackendError.BackendError =>
  BackendError.make(operation.name, given, { _tag: "PermissionDenied" }, { detail })

const detailOf = ({ below, need: { operation } }: Finding): string =>
  below
    ? `rules don't allow to ${operation} everything that could be below this directory; go on with single files`
    : `rules don't allow to ${operation} here`

/** The reason to refuse a subject. For a path that is denied, it does not depend on what is there. */
const refusalOf = (
  operation: Operation,
  subject: Subject,
  findings: ReadonlyArray<Finding>,
  asked: Asked | undefined
): BackendError.BackendError | undefined => {
  const denied = findings.find(isDenied)
  if (denied !== undefined) return refusal(operation, denied.need.given, detailOf(denied))
  const accesses = accessesOf(findings)
  if (accesses.length === 0) return undefined
  const given = subject.needs[0]?.given ?? "/"
  if (asked === undefined) return refusal(operation, given, "this needs approval")
  if (asked.answer._tag === "Refused") return refusal(operation, given, asked.answer.message)
  const keys = new Set(asked.accesses.map(keyOf))
  // Otherwise something was moved while the answer was awaited, and it is about something else.
  return accesses.every((access) => keys.has(keyOf(access)))
    ? undefined
    : BackendError.make(operation.name, given, { _tag: "Conflict" })
}

/** Many share, or one is alone. Who waits to be alone holds the gate, so that newcomers don't get ahead. */
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

export const make = (backend: Backend.Service, policy: Policy): Guard => {
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
    const decision = Policies.decide(policy, operation, path)
    const isFree =
      (looking === "names" && decision.mode === "ask") ||
      (looking !== undefined &&
        decision.mode === "deny" &&
        Policies.overlaps(policy, operation, path).some(({ mode }) => mode !== "deny"))
    return { need, path, decision: isFree ? { mode: "allow" } : decision, below: false }
  }

  const findingBelow = (need: Need, path: string): Finding => ({
    need,
    path,
    decision: Policies.strictest(Policies.overlaps(policy, need.operation, path)),
    below: true
  })

  const isDirectory = (operation: string, path: string): Failing<boolean> =>
    backend.ls(path).pipe(
      Effect.as(true),
      Effect.mapError((error) => BackendError.at(error, operation, error.path)),
      Effect.catchReason("BackendError", "NotDirectory", () => Effect.succeed(false)),
      Effect.catchReason("BackendError", "NotFound", () => Effect.succeed(false)),
      Effect.catchReason("BackendError", "OutsideRoot", () => Effect.succeed(false)),
      // It can't be looked into, so it is one.
      Effect.catchReason("BackendError", "PermissionDenied", () => Effect.succeed(true))
    )

  /** Decides about each subject. Nothing is looked at for one that is denied as it is given. */
  const examine = Effect.fnUntraced(function* (operation: Operation, subjects: ReadonlyArray<Subject>) {
    const all = subjects.map(({ needs }) => needs.map((need) => findingOf(need, need.path)))
    const open = subjects.flatMap((subject, index) => {
      const findings = all[index] ?? []
      return findings.some(isDenied) ? [] : [{ subject, findings }]
    })
    const needed = open.flatMap(({ subject: { needs } }) =>
      needs.flatMap(({ entry, path }) => (entry === true ? [path, Path.parent(path)] : [path]))
    )
    const leading = Array.from(new Set(needed))
    const reached = yield* real(operation.name, leading)
    const led = new Map(leading.map((path, index) => [path, reached[index]]))
    /** The other names of a path: where it leads, and where a link itself really is. */
    const namesOf = ({ entry, path }: Need): ReadonlyArray<string> => {
      const folder = entry === true && path !== "/" ? led.get(Path.parent(path)) : undefined
      const names = [led.get(path), folder === undefined ? undefined : Path.join(folder, Path.basename(path))]
      return names.filter((name) => name !== undefined && name !== path).map(String)
    }
    for (const { findings, subject } of open) {
      const { needs, tree } = subject
      for (const need of needs) findings.push(...namesOf(need).map((path) => findingOf(need, path)))
      if (tree === undefined || findings.some(isDenied)) continue
      const below = needs.flatMap((need) => [need.path, ...namesOf(need)].map((path) => findingBelow(need, path)))
      const isUniform = below.every(({ decision }) => decision.mode === "allow")
      if (!isUniform && (yield* isDirectory(operation.name, tree))) findings.push(...below)
    }
    return all
  })

  const authorise: Guard["authorise"] = (operation, subjects, run) => {
    const { action, alone } = operation
    // Where nothing is a link, a path leads to the same place for as long as it takes.
    const locked = alone === true ? lock.alone : backend.realPaths === undefined ? lock.open : lock.shared
    const passOf = (all: ReadonlyArray<ReadonlyArray<Finding>>, asked: Asked | undefined): Pass => ({
      refusals: subjects.map((subject, index) => refusalOf(operation, subject, all[index] ?? [], asked)),
      approved: asked?.answer._tag === "Approved" ? asked.accesses : []
    })
    return Effect.gen(function* () {
      const granted = (yield* Granted).flatMap((one) => (one.policy === policy ? one.accesses : []))
      const known = new Set(granted.map(keyOf))
      const first = yield* locked(
        Effect.gen(function* () {
          const all = yield* examine(operation, subjects)
          const asking = all
            .flatMap((findings) => (findings.some(isDenied) ? [] : accessesOf(findings)))
            .filter((access) => !known.has(keyOf(access)))
          const before: Asked | undefined =
            granted.length === 0 ? undefined : { accesses: granted, answer: { _tag: "Approved" } }
          return action !== undefined && asking.length > 0
            ? { action, asking }
            : { done: yield* run(passOf(all, before)) }
        })
      )
      if ("done" in first) return first.done
      const accesses = Array.from(new Map(first.asking.map((access) => [keyOf(access), access])).values())
      const approver = yield* Approver
      // Nobody is kept waiting while somebody thinks about an answer: so all is looked at again.
      const answer = yield* approver.ask({ action: first.action, accesses })
      return yield* locked(
        Effect.flatMap(examine(operation, subjects), (all) =>
          run(passOf(all, { accesses: [...granted, ...accesses], answer }))
        )
      )
    })
  }

  return { authorise, real }
}
