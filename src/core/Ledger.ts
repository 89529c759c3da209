/**
 * The spending of persons, tenants and other accounts, over all runs, processes and machines that share a store.
 *
 * A caller reserves before it spends, and settles the used amount afterwards. A store never lets the sum of used and
 * reserved amounts pass a cap. Layers are in `effect-deepagents/stores/Ledger` and
 * `effect-deepagents/stores/RedisLedger`.
 */
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import type * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import { TaggedError } from "../support/effect/taggedError.ts"

/** The kinds of amounts that a ledger counts. */
export const kinds = ["modelCalls", "toolCalls", "tokens", "cost"] as const

/** An amount's kind. */
export type Kind = (typeof kinds)[number]

/**
 * Amounts by their kinds. Each is a number of at least 0; `NaN`, negative and infinite ones are refused. Calls and tokens
 * are counted whole, rounded up. `cost` is in the currency of the prices, and is counted in billionths of it.
 */
export type Amounts = { readonly [K in Kind]?: number | undefined }

/** An amount of every kind. */
export type Totals = { readonly [K in Kind]: number }

/**
 * The time over which amounts are summed. A sum begins at 0 with each hour, day or month: of UTC, or of a `timeZone`
 * (`"Europe/Berlin"`, `"+02:00"`). With `every`, a window begins at each multiple of that duration since 1970, which is
 * one second at least. `"ever"` never ends.
 */
export type Window =
  | "ever"
  | "hour"
  | "day"
  | "month"
  | { readonly per: "hour" | "day" | "month"; readonly timeZone: string }
  | { readonly every: Duration.Input }

/** The most that an account may spend in a window. */
export interface Cap {
  /**
   * The name of a person, a tenant, or any other bearer of a cap: at most 512 characters. Names are compared exactly.
   */
  readonly account: string
  /** The time that the cap is for. Each window of an account has a sum of its own. */
  readonly window: Window
  /** The most of each kind. A kind that is left out has no limit, and is counted. */
  readonly max: Amounts
}

/** Amounts that are set aside. */
export interface Reservation {
  readonly id: string
  /**
   * Replaces the reserved amounts by the used ones, in the windows of the reservation. A missing kind was not used. A
   * larger amount is recorded too, and may pass the cap. Only the first call counts.
   */
  readonly settle: (actual: Amounts) => Effect.Effect<void, LedgerError>
}

/** The sums of an account in the present window. */
export interface Spent {
  readonly used: Totals
  /** Set aside by calls that have not settled. */
  readonly reserved: Totals
  /** When the window ends, in milliseconds since the epoch; absent for `"ever"`. */
  readonly resetsAt?: number | undefined
}

const explainFull = ({ max, reserved, used, wanted }: Pick<LedgerFull, "max" | "reserved" | "used" | "wanted">) =>
  `${used} of ${max} are used and ${reserved} reserved, so ${wanted === 0 ? "nothing" : `${wanted} more`} can be spent`

/**
 * An account has no room in a window for the wanted amount. Nothing was reserved.
 *
 * If `reserved` is not 0, there may be room as soon as running calls settle; else at `resetsAt`.
 */
export class LedgerFull extends TaggedError<LedgerFull>()("LedgerFull", {
  account: Schema.String,
  /** The window with its beginning: `"day 2026-11-28 UTC"`. */
  window: Schema.String,
  limit: Schema.Literals(kinds),
  max: Schema.Finite,
  used: Schema.Finite,
  reserved: Schema.Finite,
  wanted: Schema.Finite,
  /** When the window ends, in milliseconds since the epoch; absent for `"ever"`. */
  resetsAt: Schema.optionalKey(Schema.Finite)
}) {
  override get message(): string {
    const { account, limit, resetsAt, window } = this
    const later = resetsAt === undefined ? "" : ` try again after ${new Date(resetsAt).toISOString()}, or`
    return `The account ${JSON.stringify(account)} is full (${limit}, ${window}): ${explainFull(this)};${later} raise \`max\``
  }
}

/**
 * - `InvalidName`, `InvalidWindow`: a name or a window that can't be kept
 * - `InvalidAmount`: an amount that is no number of at least 0; `field` says which
 * - `Unavailable`: the store can't be reached, or can't write; try again later
 */
export const Reason = Schema.Union([
  Schema.TaggedStruct("InvalidName", { problem: Schema.String }),
  Schema.TaggedStruct("InvalidWindow", { problem: Schema.String }),
  Schema.TaggedStruct("InvalidAmount", { field: Schema.String, value: Schema.String, problem: Schema.String }),
  Schema.TaggedStruct("Unavailable", { problem: Schema.String })
])
export type Reason = typeof Reason.Type

const explain = (reason: Reason): string => {
  switch (reason._tag) {
    case "InvalidName":
      return `this can't be a name: ${reason.problem}`
    case "InvalidWindow":
      return `this can't be a window: ${reason.problem}`
    case "InvalidAmount":
      return `\`${reason.field}\` ${reason.problem}, not ${reason.value}`
    case "Unavailable":
      return `the ledger is not available: ${reason.problem}`
  }
}

/** An operation of a ledger failed. `account` is empty if it was on none, as to open a store. */
export class LedgerError extends TaggedError<LedgerError>()("LedgerError", {
  operation: Schema.String,
  account: Schema.String,
  reason: Reason,
  cause: Schema.optionalKey(Schema.Defect())
}) {
  /** Whether the same operation may succeed later. */
  get isRetryable(): boolean {
    return this.reason._tag === "Unavailable"
  }
  override get message(): string {
    const account = this.account === "" ? "" : ` ${JSON.stringify(this.account)}`
    return `${this.operation}${account}: ${explain(this.reason)}`
  }
}

/** Counts the spending of accounts, with caps that hold over all processes that share its store. */
export class Ledger extends Context.Service<
  Ledger,
  {
    /**
     * Reserves `want` under every cap, or under none. Each kind in `want` must fit: `used + reserved + want` is at most
     * `max`. Want 0 of an unknown amount: it fits if anything is left.
     *
     * If the scope closes without `settle`, or the process is killed, the reserved amounts count as spent: interrupted
     * work may have been paid for. Call `settle({})` if nothing was begun.
     */
    readonly reserve: (
      caps: Cap | ReadonlyArray<Cap>,
      want: Amounts
    ) => Effect.Effect<Reservation, LedgerFull | LedgerError, Scope.Scope>
    /** Reads the sums of an account in the present window. */
    readonly spent: (account: string, window: Window) => Effect.Effect<Spent, LedgerError>
    /** Reads the mark of a name: the greatest value that it was raised to, and 0 before that. */
    readonly mark: (name: string) => Effect.Effect<number, LedgerError>
    /**
     * Raises the mark of a name to a whole number. Says whether it did: a mark that is there already, or higher, stays.
     * Of callers that raise a mark to one value at once, one does.
     */
    readonly raise: (name: string, value: number) => Effect.Effect<boolean, LedgerError>
  }
>()("effect-deepagents/Ledger") {}

/** The service that a layer of {@link Ledger} provides. */
export type Service = Ledger["Service"]
