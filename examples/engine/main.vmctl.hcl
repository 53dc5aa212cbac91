# A cache on the container engine of this host.
#
#   vmctl plan      what would change, and why; changes nothing
#   vmctl apply     changes it, after asking
#   vmctl destroy   removes whatever vmctl made
#
# vmctl installs no engine. Of a VM, write vm = vm.dev in place of host.

vmctl {
  project = "engine"
  # `vmctl init` adds an id here, once.
}

engine "here" {
  host = "unix:///var/run/docker.sock"
}

image "busybox" {
  engine = engine.here
  ref    = "docker.io/library/busybox:1.36" # pulled; archive = "busybox.tar" loads what `docker save` wrote
}

volume "cache" {
  engine = engine.here

  lifecycle {
    prevent_destroy = true
  }
}

container "cache" {
  engine  = engine.here
  image   = image.busybox
  command = ["httpd", "-f", "-p", "8080", "-h", "/srv"]
  restart = "unless-stopped"
  memory  = "64MiB" # changes while it runs; most other edits replace it

  port {
    container = 8080
    host      = 8080
  }

  mount {
    volume = volume.cache
    target = "/srv"
  }

  healthcheck {
    command  = ["wget", "-q", "-O", "/dev/null", "http://127.0.0.1:8080/"]
    interval = "2s"
  }
}

output "endpoint" {
  value = engine.here.endpoint # for DOCKER_HOST
}
