/** Abilities of a subject. */
import type * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Service } from "../../../../core/Backend.ts"
import type { Absent } from "../assert.ts"

/** An entry at a path of the machine, without following links. `mode` is its permission bits. */
export interface FoundEntry {
  readonly kind: "file" | "directory" | "link" | "other"
  readonly mode: number
}

/** Accesses the files of a backend directly. All paths are absolute paths of the machine. */
export interface Host<out H> {
  /** The root folder of the backend, and its neighbour, which must stay unreachable. */
  readonly folders: Effect.Effect<{ readonly root: string; readonly outside: string }, never, H>
  /** Writes a file, and makes its folders. */
  readonly write: (path: string, content: Uint8Array) => Effect.Effect<void, never, H>
  /** Makes a link to `to`, an absolute path, or a path relative to the link. */
  readonly link: (path: string, to: string) => Effect.Effect<void, never, H>
  /** Makes a named pipe without a reader or writer. */
  readonly pipe: (path: string) => Effect.Effect<void, never, H>
  readonly chmod: (path: string, mode: number) => Effect.Effect<void, never, H>
  /** Removes a path without following links. */
  readonly remove: (path: string) => Effect.Effect<void, never, H>
  readonly look: (path: string) => Effect.Effect<FoundEntry | undefined, never, H>
  readonly read: (path: string) => Effect.Effect<Uint8Array, never, H>
  /** The names in a folder, in any order. */
  readonly list: (path: string) => Effect.Effect<ReadonlyArray<string>, never, H>
  /** True if a file that becomes a link during an operation never leads outside. */
  readonly resistsRaces: true | Absent
}

/** Makes huge files, and measures the memory of the process in bytes. */
export interface Huge<out H> {
  /** Writes a line with its ending many times into a file of the backend. */
  readonly plant: (path: string, line: string, times: number) => Effect.Effect<void, never, H>
  readonly memory: Effect.Effect<number>
}

/** Denies all access to a folder of the backend, until the scope closes. */
export type Deny<out H> = (folder: string) => Effect.Effect<void, never, H | Scope.Scope>

/** Fills the disk until the scope closes. */
export type FillDisk<out H> = () => Effect.Effect<void, never, H | Scope.Scope>

/** The number of files in a large folder: 20,000 if that takes seconds. `plant` makes them faster than uploads. */
export interface ManyFiles<out H> {
  readonly count: number
  readonly plant?: ((files: Readonly<Record<string, string>>) => Effect.Effect<void, never, H>) | undefined
}

/** Opens a second backend over the same files, until the scope closes. */
export type Again<H> = Effect.Effect<Service, never, H | Scope.Scope>

/**
 * Starts a process that increments a number in a file of the backend several times. It writes on condition that the
 * version is unchanged, and retries after a `Conflict`.
 */
export type Counter<out H> = (path: string, times: number) => Effect.Effect<void, never, H | Scope.Scope>

/** Abilities of a subject. Each lasts until the scope closes. */
export interface Abilities<out H> {
  /** Accesses files of this machine behind the backend. */
  readonly host: Host<H> | Absent
  /** Denies all access to a folder of the backend. */
  readonly deny: Deny<H> | Absent
  /** Fills the disk. */
  readonly fillDisk: FillDisk<H> | Absent
  readonly huge: Huge<H> | Absent
  /** Maximum bytes of a transferred file. */
  readonly maxFileSize: number | Absent
  readonly manyFiles: ManyFiles<H> | Absent
  /** Opens a second layer over the same files. Without it, there are no such checks. */
  readonly again?: Again<H> | Absent | undefined
  /** Starts another process over the same files. Without it, there are no such checks. */
  readonly counter?: Counter<H> | Absent | undefined
  /** True if a reader sees the old or the new content during a write. */
  readonly atomicWrites: true | Absent
  /** True if case and Unicode normal form distinguish names. */
  readonly distinctNames: true | Absent
}
