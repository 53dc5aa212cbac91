# A virtual machine with a container engine in it, and a registry and a cache in that.
#
#   vmctl plan      what would change, and why; changes nothing
#   vmctl apply     changes it, after asking
#   vmctl destroy   removes whatever vmctl made
#
# Then `vmctl engine exec here -- docker ps` lists the containers, and the registry answers on this
# host: curl http://127.0.0.1:5000/v2/

vmctl {
  project = "engine"
  # `vmctl init` adds an id here, once.
}

vm "dev" {
  cpus   = 2
  memory = "2GiB"

  # Downloaded once. For another machine than x86_64, take its image.
  image {
    source = "https://cloud.debian.org/images/cloud/bookworm/latest/debian-12-genericcloud-amd64.qcow2"
  }

  root_disk {
    size = "20GiB" # grows in place
  }

  cloud_init {}

  ssh {
    user = "dev"
  }

  port_forward {
    guest = 5000
    host  = 5000
  }

  # vmctl installs no engine. The user of ssh.user has to be let at its socket.
  provision "docker" {
    script = <<-EOT
      set -e
      sudo apt-get update
      sudo apt-get install -y docker.io
      sudo usermod -aG docker "$(id -un)"
    EOT
  }
}

engine "here" {
  vm = vm.dev
}

image "registry" {
  engine = engine.here
  ref    = "docker.io/library/registry:2"
}

image "redis" {
  engine = engine.here
  ref    = "docker.io/library/redis:7"
}

volume "images" {
  engine = engine.here

  lifecycle {
    prevent_destroy = true
  }
}

container "registry" {
  engine  = engine.here
  image   = image.registry
  restart = "unless-stopped"

  port {
    container = 5000
    host      = 5000      # of the VM: the port_forward leads there from this host
    host_ip   = "0.0.0.0" # not its loopback, where QEMU's forwarded ports do not lead
  }

  mount {
    volume = volume.images
    target = "/var/lib/registry"
  }
}

container "cache" {
  engine  = engine.here
  image   = image.redis
  restart = "unless-stopped"
  memory  = "128MiB" # changes while it runs

  healthcheck {
    command  = ["redis-cli", "ping"]
    interval = "5s"
  }
}
