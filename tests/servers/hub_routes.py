"""What a local Hub answers: one function an endpoint, on top of `hub_store`.

Each takes the server and the request taken apart, and refuses as the Hub does: status,
``X-Error-Code``, one line.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, unquote

import yaml
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from tests.servers.hub_store import DATE, LFS_SUFFIXES, Blob, Commit, Repo, tree

if TYPE_CHECKING:
    from tests.servers.hub_server import HubServer

REPO = r"(?P<kind>model|dataset|space)s/(?P<id>[^/]+/[^/]+)"


class Refusal(Exception):
    """An error status with the Hub's headers."""

    def __init__(self, status: int, message: str, code: str = "", **extra: Any) -> None:
        super().__init__(message)
        headers = {"X-Error-Message": message} | ({"X-Error-Code": code} if code else {})
        self.response = JSONResponse({"error": message, **extra}, status, headers)


def no_repo() -> Refusal:
    return Refusal(404, "Repository not found", "RepoNotFound")


@dataclass(frozen=True)
class Call:
    """One request, taken apart."""

    request: Request
    body: bytes
    parts: dict[str, str]
    account: str | None

    @property
    def json(self) -> Any:
        return json.loads(self.body or b"{}")

    @property
    def kind(self) -> str:
        kind = self.parts.get("kind") or ""
        return {"datasets/": "dataset", "spaces/": "space", "": "model"}.get(kind, kind)

    @property
    def id(self) -> str:
        return unquote(self.parts["id"])


def repo_of(hub: HubServer, call: Call) -> Repo:
    """The repo that is asked for, if the account may see it."""
    repo = hub.store.repos.get((call.kind, call.id))
    if repo is None or (repo.private and call.account != repo.id.split("/")[0]):
        status = 404 if call.account else 401
        raise Refusal(status, "Repository not found", "RepoNotFound")
    return repo


def own(hub: HubServer, call: Call) -> Repo:
    """The same, if the account may write to it."""
    repo = repo_of(hub, call)
    if call.account != repo.id.split("/")[0]:
        raise Refusal(403, "You don't have the rights to write to this repo")
    return repo


def commit_of(repo: Repo, revision: str) -> Commit:
    """The commit of a branch, tag or id."""
    commit = repo.find(unquote(revision))
    if commit is None:
        raise Refusal(404, f"Invalid rev id: {revision}", "RevisionNotFound")
    return commit


def whoami(hub: HubServer, call: Call) -> Response:
    access = {"type": "access_token", "accessToken": {"displayName": "tests", "role": "write"}}
    return JSONResponse({"type": "user", "id": "1", "name": call.account, "orgs": [], "auth": access})


def create(hub: HubServer, call: Call) -> Response:
    asked = call.json
    kind, owner = asked.get("type") or "model", asked.get("organization") or call.account
    name = f"{owner}/{asked['name']}"
    prefix = "" if kind == "model" else f"{kind}s/"
    url = f"{hub.url}/{prefix}{name}"
    if owner != call.account:
        raise Refusal(403, f"You don't have the rights to create a {kind} under {owner}")
    if (kind, name) in hub.store.repos:
        raise Refusal(409, f"You already created this {kind} repo", url=url)
    private = asked.get("visibility") == "private" or bool(asked.get("private"))
    hub.store.repos[kind, name] = Repo(kind, name, private, asked.get("sdk"))
    return JSONResponse({"url": url, "name": name, "id": "1"})


def delete(hub: HubServer, call: Call) -> Response:
    asked = call.json
    owner = asked.get("organization") or call.account
    if hub.store.repos.pop((asked.get("type") or "model", f"{owner}/{asked['name']}"), None):
        return JSONResponse({})
    raise no_repo()


def settings(hub: HubServer, call: Call) -> Response:
    repo, asked = own(hub, call), call.json
    if "visibility" in asked or "private" in asked:
        repo.private = asked.get("visibility") == "private" or bool(asked.get("private"))
    return JSONResponse({"private": repo.private})


def validate_yaml(hub: HubServer, call: Call) -> Response:
    """The Hub's check, as far as cards are concerned: YAML that is a mapping, and a licence."""
    errors = []
    found = re.match(r"---\n(.*?)\n?---(\n|$)", call.json["content"], re.DOTALL)
    try:
        data = yaml.safe_load(found[1]) if found else {}
        if not isinstance(data or {}, dict):
            errors.append({"message": "metadata should be a mapping"})
        elif not isinstance((data or {}).get("license", ""), str | list):
            errors.append({"message": '"license" must be a string'})
    except yaml.YAMLError as error:
        errors.append({"message": str(error).splitlines()[0]})
    if errors and call.request.headers.get("accept") == "text/plain":
        return Response(errors[0]["message"], 400)
    return JSONResponse({"errors": errors, "warnings": []}, 400 if errors else 200)


def preupload(hub: HubServer, call: Call) -> Response:
    files = commit_of(own(hub, call), call.parts["rev"]).files
    answers = []
    for file in call.json["files"]:
        path, there = file["path"], files.get(file["path"])
        large = path.endswith(LFS_SUFFIXES) or file["size"] > 10_000_000
        answer = {"path": path, "uploadMode": "lfs" if large else "regular", "shouldIgnore": False}
        answers.append(answer | ({"oid": there.etag} if there else {}))
    return JSONResponse({"files": answers})


def lfs_batch(hub: HubServer, call: Call) -> Response:
    own(hub, call)
    objects = []
    for wanted in call.json["objects"]:
        answer = {"oid": wanted["oid"], "size": wanted["size"]}
        if wanted["oid"] not in hub.store.objects:
            up, verify = f"{hub.url}/lfs/{wanted['oid']}", f"{hub.url}{call.request.url.path}"
            verify = verify.replace("objects/batch", "objects/verify")
            answer["actions"] = {"upload": {"href": up}, "verify": {"href": verify}}
        objects.append(answer)
    return JSONResponse({"transfer": "basic", "objects": objects})


def lfs_put(hub: HubServer, call: Call) -> Response:
    if Blob(call.body, True).sha256 != call.parts["oid"]:
        raise Refusal(400, "content does not match its SHA-256")
    hub.store.objects[call.parts["oid"]] = call.body
    return Response()


def lfs_verify(hub: HubServer, call: Call) -> Response:
    own(hub, call)
    if len(hub.store.objects.get(call.json["oid"], b"")) != call.json["size"]:
        raise Refusal(404, "no such object")
    return JSONResponse({})


def commit(hub: HubServer, call: Call) -> Response:
    repo, branch = own(hub, call), unquote(call.parts["rev"])
    if branch not in repo.branches:
        raise Refusal(404, f"Invalid rev id: {branch}", "RevisionNotFound")
    head = repo.commits[repo.branches[branch]]
    lines = [json.loads(line) for line in call.body.splitlines() if line.strip()]
    header, files = lines[0]["value"], dict(head.files)
    if header.get("parentCommit", head.oid) != head.oid:
        raise Refusal(412, "A commit has happened since. Please refresh and try again.")
    for line in lines[1:]:
        try:
            files = hub.store.apply(files, line["key"], line["value"])
        except KeyError:
            raise Refusal(404, "A file with this name doesn't exist", "EntryNotFound") from None
    made = repo.add(branch, header["summary"], header.get("description", ""), files)
    url = f"{hub.url}/{'' if repo.kind == 'model' else repo.kind + 's/'}{repo.id}"
    return JSONResponse({"success": True, "commitOid": made.oid, "commitUrl": f"{url}/commit/{made.oid}"})


def info(hub: HubServer, call: Call) -> Response:
    repo = repo_of(hub, call)
    at = commit_of(repo, call.parts.get("rev") or "main")
    files = [
        {"rfilename": path, "size": len(blob.content), "blobId": blob.oid} for path, blob in sorted(at.files.items())
    ]
    told: dict[str, Any] = {"_id": "1", "id": repo.id, "sha": at.oid, "siblings": files}
    told |= {"private": repo.private, "gated": False, "disabled": False, "sdk": repo.sdk}
    told |= {"author": repo.id.split("/")[0], "tags": [], "downloads": 0, "likes": 0}
    return JSONResponse(told | {"lastModified": DATE, "createdAt": DATE})


def tree_of(hub: HubServer, call: Call) -> Response:
    at, below = commit_of(repo_of(hub, call), call.parts["rev"]), unquote(call.parts["path"] or "")
    recursive = call.request.query_params.get("recursive", "").lower() in ("true", "1")
    entries = tree(at.files, below, recursive)
    if below and not entries:
        raise Refusal(404, f"{below} does not exist", "EntryNotFound")
    return JSONResponse(entries)


def paths_info(hub: HubServer, call: Call) -> Response:
    files = commit_of(repo_of(hub, call), call.parts["rev"]).files
    kind = call.request.headers.get("content-type", "")
    asked = call.json if "json" in kind else parse_qs(call.body.decode())
    entries = {entry["path"]: entry for entry in tree(files, "", recursive=True)}
    return JSONResponse([entries[path] for path in asked["paths"] if path in entries])


def refs(hub: HubServer, call: Call) -> Response:
    repo = repo_of(hub, call)
    told = {
        folder: [
            {"name": name, "ref": f"refs/{ref}/{name}", "targetCommit": oid} for name, oid in sorted(named.items())
        ]
        for folder, ref, named in (("branches", "heads", repo.branches), ("tags", "tags", repo.tags))
    }
    return JSONResponse(told | {"converts": []})


def commits(hub: HubServer, call: Call) -> Response:
    repo = repo_of(hub, call)
    author = [{"user": repo.id.split("/")[0]}]
    return JSONResponse(
        [
            {"id": c.oid, "title": c.title, "message": c.message, "date": DATE, "authors": author}
            for c in repo.history(commit_of(repo, call.parts["rev"]))
        ]
    )


def branch(hub: HubServer, call: Call) -> Response:
    repo, name = own(hub, call), unquote(call.parts["name"])
    if call.request.method == "DELETE":
        return JSONResponse({"removed": repo.branches.pop(name)})
    if name in repo.branches:
        raise Refusal(409, "Reference already exists")
    repo.branches[name] = commit_of(repo, call.json.get("startingPoint", "main")).oid
    return JSONResponse({})


def tag(hub: HubServer, call: Call) -> Response:
    repo = own(hub, call)
    if call.request.method == "DELETE":
        if repo.tags.pop(unquote(call.parts["rev"]), None) is None:
            raise Refusal(404, "no such tag", "RevisionNotFound")
        return JSONResponse({})
    at, name = commit_of(repo, call.parts["rev"]), call.json["tag"]
    if name in repo.tags:
        raise Refusal(409, "Tag reference exists already")
    repo.tags[name] = at.oid
    return JSONResponse({})


def resolve(hub: HubServer, call: Call) -> Response:
    repo = repo_of(hub, call)
    at, path = commit_of(repo, call.parts["rev"]), unquote(call.parts["path"])
    blob = at.files.get(path)
    if blob is None:
        refusal = Refusal(404, "Entry not found", "EntryNotFound")
        refusal.response.headers["X-Repo-Commit"] = at.oid
        raise refusal
    headers = {"ETag": f'"{blob.etag}"', "X-Repo-Commit": at.oid, "Accept-Ranges": "bytes"}
    if blob.lfs:  # the Hub redirects to its storage; a client of ours needs these alone
        headers |= {"X-Linked-Etag": f'"{blob.etag}"', "X-Linked-Size": str(len(blob.content))}
    return _content(blob.content, call, headers)


def unknown(hub: HubServer, call: Call) -> Response:
    raise Refusal(404, "no such page")


def _content(content: bytes, call: Call, headers: dict[str, str]) -> Response:
    wanted = re.fullmatch(r"bytes=(\d+)-(\d*)", call.request.headers.get("range", ""))
    status = 200
    if wanted and content:
        start, end = int(wanted[1]), int(wanted[2] or len(content) - 1)
        headers["Content-Range"] = f"bytes {start}-{min(end, len(content) - 1)}/{len(content)}"
        content, status = content[start : end + 1], 206
    if call.request.method == "HEAD":
        return Response(None, status, headers | {"Content-Length": str(len(content))})
    return Response(content, status, headers, "application/octet-stream")


PAGE = r"/(?P<kind>datasets/|spaces/|)(?P<id>[^/]+/[^/]+)"
ROUTES: list[tuple[str, str, Any]] = [
    ("GET", "/api/whoami-v2", whoami),
    ("POST", "/api/repos/create", create),
    ("DELETE", "/api/repos/delete", delete),
    ("POST", "/api/validate-yaml", validate_yaml),
    ("PUT", f"/api/{REPO}/settings", settings),
    ("POST", f"/api/{REPO}/preupload/(?P<rev>[^/]+)", preupload),
    ("POST", f"/api/{REPO}/commit/(?P<rev>[^/]+)", commit),
    ("POST", f"/api/{REPO}/paths-info/(?P<rev>[^/]+)", paths_info),
    ("GET", f"/api/{REPO}/tree/(?P<rev>[^/]+)(/(?P<path>.+))?", tree_of),
    ("GET", f"/api/{REPO}/refs", refs),
    ("GET", f"/api/{REPO}/commits/(?P<rev>[^/]+)", commits),
    ("POST DELETE", f"/api/{REPO}/branch/(?P<name>[^/]+)", branch),
    ("POST DELETE", f"/api/{REPO}/tag/(?P<rev>[^/]+)", tag),
    ("GET", f"/api/{REPO}(/revision/(?P<rev>[^/]+))?", info),
    ("POST", rf"{PAGE}\.git/info/lfs/objects/batch", lfs_batch),
    ("POST", rf"{PAGE}\.git/info/lfs/objects/verify", lfs_verify),
    ("PUT", "/lfs/(?P<oid>[0-9a-f]{64})", lfs_put),
    ("GET HEAD", f"{PAGE}/resolve/(?P<rev>[^/]+)/(?P<path>.+)", resolve),
]
NEED_TOKEN = {*(whoami, create, delete, settings, preupload, lfs_batch, lfs_verify, commit, branch, tag)}


def route(method: str, path: str) -> tuple[str, Any, dict[str, str]]:
    for methods, pattern, handler in ROUTES:
        found = re.fullmatch(pattern, path)
        if found and method in methods.split():
            return handler.__name__.replace("_", "-"), handler, found.groupdict()
    return "unknown", unknown, {}
