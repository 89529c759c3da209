/** The page of a sign-in, apart: types of the public module must not lead to those of an optional package. */

/** The view that a person is shown: whose server it is, the page to sign in at, and the code to type in there, if any. */
export interface Page {
  readonly server: string
  readonly url: string
  readonly origin: string
  readonly userCode?: string
}
