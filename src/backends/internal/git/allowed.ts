/** The protection of files that decide which programs run: its refusal, and the places that a person approved. */
import * as Context from "effect/Context"

/** The protected places that a person approved, for the work in progress. Paths are real ones below the root. */
export const Allowed = Context.Reference<ReadonlySet<string>>("effect-deepagents/backends/AllowedGitPlaces", {
  defaultValue: () => new Set()
})

/** The owner of a protected file: a git repository, or the home of the person. */
export type Kind = "git" | "home"

/** A protected file or folder, by its real path below the root. */
export interface ProtectedPlace {
  readonly path: string
  readonly kind: Kind
}

/** The details of refusals. */
export const refusalDetails: { readonly [kind in Kind]: string } = {
  git: "this belongs to a git repository, or to the settings of git, which decide what programs run; a person must approve the change",
  home: "this is a hidden file of the home, or a program there, by which programs start; a person must approve the change"
}

/** Tells whether an operation failed because of the protection. */
export const isRefusal = ({ detail }: { readonly detail?: string | undefined }): boolean =>
  detail === refusalDetails.git || detail === refusalDetails.home
