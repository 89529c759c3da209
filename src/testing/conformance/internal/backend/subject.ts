/** Abilities of a subject beside those of a backend. */
import type * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Service } from "../../../../core/Backend.ts"
import type { Absent } from "../assert.ts"

/** An entry at a path of the machine itself, links not followed; `mode` is its permission bits. */
export interface Found {
  readonly kind: "file" | "directory" | "link" | "other"
  readonly mode: number
}

/** The files behind a backend, for changes behind its back. All paths are absolute paths of the machine. */
export interface Host<out H> {
  /** The folder that is `/` of the backend, and one beside it in the same folder, which must never be reached. */
  readonly folders: Effect.Effect<{ readonly root: string; readonly outside: string }, never, H>
  /** Writes a file, with the folders that it needs. */
  readonly write: (path: string, content: Uint8Array) => Effect.Effect<void, never, H>
  /** Makes a link to `to`, an absolute path, or a path relative to the link. */
  readonly link: (path: string, to: string) => Effect.Effect<void, never, H>
  /** Makes a named pipe, with nobody at its other end. */
  readonly pipe: (path: string) => Effect.Effect<void, never, H>
  readonly chmod: (path: string, mode: number) => Effect.Effect<void, never, H>
  /** Removes a path without following links. */
  readonly remove: (path: string) => Effect.Effect<void, never, H>
  readonly look: (path: string) => Effect.Effect<Found | undefined, never, H>
  readonly read: (path: string) => Effect.Effect<Uint8Array, never, H>
  /** The names in a folder, in any order. */
  readonly list: (path: string) => Effect.Effect<ReadonlyArray<string>, never, H>
  /** Nothing outside is reached by a file that another process turns into a link at the worst moment. */
  readonly resistsRaces: true | Absent
}

/** Files that are too large to be uploaded, and how much memory the process has at the moment, in bytes. */
export interface Huge<out H> {
  /** Puts a line (which has its ending) so many times into a file at a path of the backend. */
  readonly plant: (path: string, line: string, times: number) => Effect.Effect<void, never, H>
  readonly memory: Effect.Effect<number>
}

/** Makes the system refuse everything in a folder, given as a path of the backend, until the scope is closed. */
export type Deny<out H> = (folder: string) => Effect.Effect<void, never, H | Scope.Scope>

/** Fills the disk until the scope is closed: no byte more can be written. */
export type FillDisk<out H> = () => Effect.Effect<void, never, H | Scope.Scope>

/**
 * The number of files that the checks of a large folder make: 20,000 if that takes seconds. They are uploaded, unless
 * `plant` can make them faster behind the back of the backend, by their paths in it.
 */
export interface ManyFiles<out H> {
  readonly count: number
  readonly plant?: ((files: Readonly<Record<string, string>>) => Effect.Effect<void, never, H>) | undefined
}

/** Another backend over the same files, as a second layer of this process has it, until the scope is closed. */
export type Again<H> = Effect.Effect<Service, never, H | Scope.Scope>

/**
 * Starts another process that counts in a file of the backend. `times` times, it reads the number and writes the
 * next one, on the condition that the version is unchanged; after a `Conflict` it tries again.
 */
export type Counter<out H> = (path: string, times: number) => Effect.Effect<void, never, H | Scope.Scope>

/** Abilities that a subject has, or {@link Absent}. All of them last until the scope is closed. */
export interface Abilities<out H> {
  /** The backend has files of this machine. */
  readonly host: Host<H> | Absent
  /** Makes the system refuse everything in a folder, given as a path of the backend. */
  readonly deny: Deny<H> | Absent
  /** Fills the disk: no byte more can be written. */
  readonly fillDisk: FillDisk<H> | Absent
  readonly huge: Huge<H> | Absent
  /** The most bytes that a file of an upload or a download may have. */
  readonly maxFileSize: number | Absent
  readonly manyFiles: ManyFiles<H> | Absent
  /** Other layers of this process may work on the same files. Left out, nothing is said of that. */
  readonly again?: Again<H> | Absent | undefined
  /** Other processes may work on the same files. Left out, nothing is said of that. */
  readonly counter?: Counter<H> | Absent | undefined
  /** Whoever reads a file while it is written gets the old one or the new one. */
  readonly atomicWrites: true | Absent
  /** Names that differ in case or in Unicode normal form are different names. */
  readonly distinctNames: true | Absent
}
