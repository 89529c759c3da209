/** Tenants: principals, their parts of the store, and the names of their threads. */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { make as failure, type SessionError } from "../../core/SessionError.ts"
import { type Service, SessionStore } from "../../core/SessionStore.ts"
import { sha256Sync } from "../../support/store/sha256.ts"
import { nameProblem } from "../../support/text/names.ts"
import { scope } from "./scope.ts"

/** Texts without control characters and half characters: two that differ stay different when they are encoded. */
const printable = /^[^\p{C}]{1,128}$/u

/** A recognised person or program. `tenant` owns threads; `id` and `roles` decide on requests. */
export const Principal = Schema.Struct({
  tenant: Schema.String.check(Schema.isPattern(printable)),
  id: Schema.String.check(Schema.isPattern(printable)),
  roles: Schema.Array(Schema.String)
})
export interface Principal extends Schema.Schema.Type<typeof Principal> {}

/** The principal whose input or decision a run is at work on. Agents and tools that need it run on servers only. */
export class Caller extends Context.Service<Caller, Principal>()("effect-deepagents/Caller") {}

declare const brand: unique symbol

/** The name of a thread. Only {@link Tenant} makes it: an id alone opens nothing. */
export interface ThreadRef {
  readonly [brand]: true
  readonly principal: Principal
  /** The id as the tenant knows it. */
  readonly id: string
}

/** See {@link tenant}. */
export interface Tenant {
  readonly principal: Principal
  /** Names a thread, which need not exist. Fails with `InvalidId`. */
  readonly thread: (id: string) => Effect.Effect<ThreadRef, SessionError>
  /** The store as the tenant sees it: its own threads, under their own ids. */
  readonly store: Service
}

/** The meaning of a name: the part of the store, and the id of the thread in the store of all. */
export interface NamedThread {
  readonly store: Service
  readonly baseId: string
}

/** The names that were made. A name that somebody made up is in nobody's table. */
const names = new WeakMap<ThreadRef, NamedThread>()

/** Resolves a name. */
export const namedBy = (thread: ThreadRef): NamedThread | undefined => names.get(thread)

const longest = 255

/** The most characters of a prefix that is readable. */
const readable = 200

const prefixOf = (name: string): string => {
  const encoded = printable.test(name) ? encodeURIComponent(name) : undefined
  return encoded === undefined || encoded.length > readable ? `h/${sha256Sync(name)}/` : `t/${encoded}/`
}

/** The part of a tenant in the store of all. No name of a tenant is the beginning of another one's prefix. */
const partOf = (name: string) => ({
  prefix: prefixOf(name),
  metadata: { "effect-deepagents/tenant": name }
})

/** A tenant's part of a store, and the prefix of its threads there. */
interface TenantPart {
  readonly store: Service
  readonly prefix: string
}

/** The parts of tenants that asked last, by store and tenant: all requests and readers of a tenant share its part. */
const parts = new WeakMap<Service, Map<string, TenantPart>>()

/** The most parts that are kept of a store. */
const mostParts = 256

const makePart = (base: Service, name: string): TenantPart => {
  const part = partOf(name)
  return { store: scope(base, part), prefix: part.prefix }
}

/** Gives the part of a tenant, and forgets the one that was not wanted for the longest time. */
const findPart = (base: Service, name: string): TenantPart => {
  const all = parts.get(base) ?? new Map<string, TenantPart>()
  parts.set(base, all)
  const one = all.get(name) ?? makePart(base, name)
  all.delete(name)
  all.set(name, one)
  const [oldest] = all.keys()
  if (all.size > mostParts && oldest !== undefined) all.delete(oldest)
  return one
}

/** Makes the view of a tenant on a store. */
const tenantOn = (base: Service, principal: Principal): Tenant => {
  const { prefix, store } = findPart(base, principal.tenant)
  return {
    principal,
    store,
    thread: (id) => {
      const problem = nameProblem(id, longest)
      if (problem !== undefined)
        return Effect.fail(failure("thread", id.slice(0, longest), { _tag: "InvalidId", problem }))
      // The brand has no value: the table of names is the proof.
      const ref = Object.freeze({ principal, id }) as ThreadRef
      names.set(ref, { store, baseId: prefix + id })
      return Effect.succeed(ref)
    }
  }
}

/** Gives the view of a principal's tenant: its threads, and its part of the store. */
export const tenant = (principal: Principal): Effect.Effect<Tenant, never, SessionStore> =>
  SessionStore.useSync((store) => tenantOn(store, principal))
